-- Begin a session, and forget those that are of no use any more: retired, or long expired, and without a tree.
WITH clock AS MATERIALIZED (
    SELECT {instant}($1) AS now
),
pruned AS (
    DELETE FROM {schema}.workers AS worker
    USING clock
    WHERE
        (worker.is_retired OR worker.expires_at < clock.now - $7::bigint)
        AND worker.id <> $2
        AND NOT EXISTS (
            SELECT FROM {schema}.runs AS root
            WHERE root.owner = worker.id AND root.owner <> '' AND root.number = 0
        )
)
INSERT INTO {schema}.workers (id, name, definitions, started_at, expires_at, is_retired, process, lease)
SELECT $2, $3, $4, $5, clock.now + $6::bigint, false, $8, $9 FROM clock
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name,
    definitions = excluded.definitions,
    started_at = excluded.started_at,
    expires_at = excluded.expires_at,
    is_retired = false,
    process = excluded.process,
    lease = excluded.lease
