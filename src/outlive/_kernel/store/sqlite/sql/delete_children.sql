DELETE FROM outlive_runs WHERE journal IN (SELECT value FROM json_each(?1)) AND number > 0
