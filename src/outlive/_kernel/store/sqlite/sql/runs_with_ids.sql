-- The runs with these ids.
outlive_runs AS run INDEXED BY outlive_runs_id
WHERE run.id IN (SELECT value FROM json_each(:ids))
