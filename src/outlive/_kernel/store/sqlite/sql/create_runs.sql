-- Root runs of new trees; rows of NULLs are padding.
INSERT INTO outlive_runs ({run_names})
SELECT {run_places}
FROM (VALUES {run_row}) AS new
WHERE new.column1 IS NOT NULL
