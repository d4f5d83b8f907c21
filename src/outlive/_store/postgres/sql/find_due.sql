-- What worker $2 could claim of the definitions $3, oldest wake-up first: `$4` runs and one after them.
--
-- Nobody's runs, and those of owners who are not alive. Each pair of an owner and a definition is one short walk in the
-- index, however many runs are due, asleep or ended; owners are found by steps from one to the next.
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT {schema}.instant($1) AS now
),
owners (id) AS (
    SELECT min(owner) FROM {schema}.runs WHERE wake_at IS NOT NULL AND number = 0 AND owner > ''
    UNION ALL
    SELECT (SELECT min(owner) FROM {schema}.runs WHERE wake_at IS NOT NULL AND number = 0 AND owner > owners.id)
    FROM owners
    WHERE owners.id IS NOT NULL
),
free (id) AS (
    SELECT ''
    UNION ALL
    SELECT owners.id
    FROM owners
    WHERE
        owners.id IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM {schema}.workers AS worker, clock
            WHERE worker.id = owners.id AND worker.expires_at > clock.now AND NOT worker.is_retired
        )
)
SELECT clock.now, found.wake_at, found.key
FROM clock
LEFT JOIN LATERAL (
    SELECT run.wake_at, run.key
    FROM free
    CROSS JOIN unnest($3::text[]) AS definition (name)
    CROSS JOIN LATERAL (
        SELECT root.wake_at, root.key
        FROM {schema}.runs AS root
        WHERE
            root.owner = free.id AND root.definition = definition.name
            AND root.wake_at IS NOT NULL AND root.number = 0
        ORDER BY root.wake_at
        LIMIT $4 + 1
    ) AS run
    WHERE EXISTS (
        SELECT FROM {schema}.workers AS worker
        WHERE worker.id = $2 AND worker.expires_at > clock.now AND NOT worker.is_retired
    )
    ORDER BY run.wake_at, run.key
    LIMIT $4 + 1
) AS found ON true
