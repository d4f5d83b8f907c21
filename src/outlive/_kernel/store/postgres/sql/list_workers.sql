SELECT
    worker.id,
    worker.name,
    worker.definitions,
    worker.started_at,
    worker.expires_at,
    worker.expires_at > {instant}($1) AND NOT worker.is_retired,
    worker.process,
    worker.lease,
    CASE WHEN $2::boolean THEN (
        SELECT count(*)
        FROM {schema}.runs AS root
        WHERE root.owner = worker.id AND root.owner <> '' AND root.number = 0 AND root.wake_at IS NOT NULL
    ) ELSE 0 END
FROM {schema}.workers AS worker
ORDER BY worker.started_at, worker.id
