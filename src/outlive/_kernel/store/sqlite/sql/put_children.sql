-- Child runs, new ones and others; rows of NULLs are padding. The first column is unused: a child's key is its own.
INSERT INTO outlive_runs ({child_names})
SELECT {child_places}
FROM (VALUES {run_row}) AS new
WHERE new.column3 IS NOT NULL
ON CONFLICT (journal, number) WHERE number > 0 DO UPDATE SET {state_set}
