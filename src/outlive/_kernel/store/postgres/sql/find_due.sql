-- What worker $2 could claim of the definitions $3: the first $4 without an owner and the one after them, and the first
-- $5 orphans and the one after them. Orphans are runs of owners who have not been alive for $6 microseconds; with $5 = 0
-- none are looked for. All of them without a queue. And whether users have asked for runs that are not there yet, and the
-- queues in which there may be something to claim.
--
-- Each pair of an owner and a definition is one short walk in the
-- index, however many runs are due, asleep or ended; owners are found by steps from one to the next.
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT {instant}($1) AS now
),
owners (id) AS (
    SELECT min(owner)
    FROM {schema}.runs
    WHERE wake_at IS NOT NULL AND number = 0 AND queue IS NULL AND owner > '' AND $5::integer > 0
    UNION ALL
    SELECT (
        SELECT min(owner)
        FROM {schema}.runs
        WHERE wake_at IS NOT NULL AND number = 0 AND queue IS NULL AND owner > owners.id
    )
    FROM owners
    WHERE owners.id IS NOT NULL
),
lost (id) AS (
    SELECT owners.id
    FROM owners
    WHERE
        owners.id IS NOT NULL
        AND NOT EXISTS (
            SELECT FROM {schema}.workers AS worker, clock
            WHERE
                worker.id = owners.id AND worker.expires_at + $6::bigint > clock.now
                AND NOT (worker.is_retired AND $6::bigint = 0)
        )
),
lined (queue) AS (
    SELECT min(queue) FROM {schema}.lines
    UNION ALL
    SELECT (SELECT min(queue) FROM {schema}.lines WHERE queue > lined.queue) FROM lined WHERE lined.queue IS NOT NULL
),
held (owner, queue) AS (
    (
        SELECT owner, queue
        FROM {schema}.runs
        WHERE queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL
        ORDER BY owner, queue
        LIMIT 1
    )
    UNION ALL
    SELECT following.owner, following.queue
    FROM held
    CROSS JOIN LATERAL (
        SELECT run.owner, run.queue
        FROM {schema}.runs AS run
        WHERE
            (run.owner, run.queue) > (held.owner, held.queue)
            AND run.queue IS NOT NULL AND run.slot <> 1 AND run.wake_at IS NOT NULL
        ORDER BY run.owner, run.queue
        LIMIT 1
    ) AS following
)
SELECT
    clock.now,
    found.wake_at,
    found.key,
    found.is_orphan,
    EXISTS (SELECT FROM {schema}.requests) AS has_requests,
    ARRAY(
        SELECT lined.queue FROM lined WHERE lined.queue IS NOT NULL
        UNION
        SELECT held.queue
        FROM held
        WHERE NOT EXISTS (
            SELECT FROM {schema}.workers AS worker
            WHERE
                worker.id = held.owner AND worker.expires_at + $6::bigint > clock.now
                AND NOT (worker.is_retired AND $6::bigint = 0)
        )
    ) AS queues
FROM clock
LEFT JOIN LATERAL (
    (
        SELECT run.wake_at, run.key, false AS is_orphan
        FROM unnest($3::text[]) AS definition (name)
        CROSS JOIN LATERAL (
            SELECT root.wake_at, root.key
            FROM {schema}.runs AS root
            WHERE
                root.owner = '' AND root.definition = definition.name
                AND root.wake_at IS NOT NULL AND root.number = 0 AND root.queue IS NULL
            ORDER BY root.wake_at
            LIMIT $4::integer + 1
        ) AS run
        ORDER BY run.wake_at, run.key
        LIMIT $4::integer + 1
    )
    UNION ALL
    (
        SELECT run.wake_at, run.key, true AS is_orphan
        FROM lost
        CROSS JOIN unnest($3::text[]) AS definition (name)
        CROSS JOIN LATERAL (
            SELECT root.wake_at, root.key
            FROM {schema}.runs AS root
            WHERE
                root.owner = lost.id AND root.definition = definition.name
                AND root.wake_at IS NOT NULL AND root.number = 0 AND root.queue IS NULL
            ORDER BY root.wake_at
            LIMIT $5::integer + 1
        ) AS run
        ORDER BY run.wake_at, run.key
        LIMIT $5::integer + 1
    )
) AS found ON EXISTS (
    SELECT FROM {schema}.workers AS worker
    WHERE worker.id = $2 AND worker.expires_at > clock.now AND NOT worker.is_retired
)
