-- The watches of runs that have ended; ?1 is a JSON array of ids.
DELETE FROM outlive_watches
WHERE run_id IN (SELECT value FROM json_each(?1))
RETURNING run_id, watcher, key
