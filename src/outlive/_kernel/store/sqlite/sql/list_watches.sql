-- Watches behind (?1, ?2), at most ?3.
SELECT run_id, watcher, key FROM outlive_watches WHERE (run_id, watcher) > (?1, ?2) ORDER BY run_id, watcher LIMIT ?3
