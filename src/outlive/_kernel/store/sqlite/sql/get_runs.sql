-- Runs by key (?1) or by id (?2), both JSON arrays.
SELECT json_group_array(json_array({run_names}))
FROM outlive_runs
WHERE key IN (SELECT value FROM json_each(?1)) OR id IN (SELECT value FROM json_each(?2))
