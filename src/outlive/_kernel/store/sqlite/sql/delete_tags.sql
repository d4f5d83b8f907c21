DELETE FROM outlive_tags WHERE run_key IN (SELECT value FROM json_each(?1))
