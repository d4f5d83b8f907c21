-- Root runs that exist; rows of NULLs are padding.
--
-- Only what a fold can change is set, because each index with a column in SET is written.
UPDATE outlive_runs
SET {state_places}
FROM (VALUES {state_row}) AS new
WHERE outlive_runs.key = new.column1
