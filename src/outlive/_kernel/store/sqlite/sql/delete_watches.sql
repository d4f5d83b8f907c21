-- Watches that the runs with these ids have; ?1 is a JSON array.
DELETE FROM outlive_watches WHERE watcher IN (SELECT value FROM json_each(?1))
