-- Watches ($1 runs, $2 watchers, $3 keys) of roots that have not ended, and cannot end before this commits.
WITH target AS (
    SELECT run.id
    FROM {schema}.runs AS run
    WHERE run.id = ANY ($1::text[]) AND run.number = 0 AND run.status IN {alive}
    ORDER BY run.key
    FOR SHARE
)
INSERT INTO {schema}.watches (run_id, watcher, key)
SELECT new.run_id, new.watcher, new.key
FROM unnest($1::text[], $2::text[], $3::text[]) AS new (run_id, watcher, key)
JOIN target ON target.id = new.run_id
ON CONFLICT (run_id, watcher) DO UPDATE SET key = excluded.key
RETURNING run_id
