-- What worker $2 could claim in queue $4 of the definitions $3, without what is in line: the first $5 without an owner, and
-- the first $6 orphans, as find_due.sql has them, with where they are and how many slots they take. And the cell of the queue
-- ($8), and whether it has a line.
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT {instant}($1) AS now
),
owners (id) AS (
    SELECT min(owner)
    FROM {schema}.runs
    WHERE queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL AND owner > '' AND $6::integer > 0
    UNION ALL
    SELECT (
        SELECT min(owner)
        FROM {schema}.runs
        WHERE queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL AND owner > owners.id
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
                worker.id = owners.id AND worker.expires_at + $7::bigint > clock.now
                AND NOT (worker.is_retired AND $7::bigint = 0)
        )
)
SELECT
    clock.now,
    (SELECT cell.data FROM {schema}.cells AS cell WHERE cell.name = $8) AS cell,
    EXISTS (
        SELECT FROM {schema}.lines AS line WHERE line.queue = $4 AND line.definition = ANY ($3::text[])
    ) AND EXISTS (
        SELECT FROM {schema}.workers AS worker
        WHERE worker.id = $2 AND worker.expires_at > clock.now AND NOT worker.is_retired
    ) AS has_line,
    found.wake_at,
    found.key,
    found.slot,
    found.slots,
    found.is_orphan
FROM clock
LEFT JOIN LATERAL (
    SELECT run.wake_at, run.key, run.slot, run.slots, owner.is_orphan
    FROM (
        SELECT '' AS id, false AS is_orphan, $5::integer AS most
        UNION ALL
        SELECT lost.id, true, $6::integer FROM lost
    ) AS owner
    CROSS JOIN unnest($3::text[]) AS definition (name)
    CROSS JOIN LATERAL (
        (
            SELECT root.wake_at, root.key, root.slot, root.slots
            FROM {schema}.runs AS root
            WHERE
                root.owner = owner.id AND root.queue = $4 AND root.definition = definition.name
                AND root.queue IS NOT NULL AND root.slot <> 1 AND root.wake_at <= clock.now
            ORDER BY root.wake_at
            LIMIT owner.most
        )
        UNION ALL
        (
            SELECT root.wake_at, root.key, root.slot, root.slots
            FROM {schema}.runs AS root
            WHERE
                root.owner = owner.id AND root.queue = $4 AND root.definition = definition.name
                AND root.queue IS NOT NULL AND root.slot <> 1 AND root.wake_at > clock.now
            ORDER BY root.wake_at
            LIMIT 1
        )
    ) AS run
) AS found ON EXISTS (
    SELECT FROM {schema}.workers AS worker
    WHERE worker.id = $2 AND worker.expires_at > clock.now AND NOT worker.is_retired
)
