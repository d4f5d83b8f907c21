DELETE FROM outlive_runs WHERE key IN (SELECT value FROM json_each(?1))
