-- Watches behind ($1, $2), at most $3.
SELECT run_id, watcher, key
FROM {schema}.watches
WHERE (run_id, watcher) > ($1::text, $2::text)
ORDER BY run_id, watcher
LIMIT $3
