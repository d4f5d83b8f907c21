-- The $3 keys of queue $1 that wait longest, each with its runs in line up to $4. A key waits since the oldest of
-- the runs that are first in its lines; the first $2 lines are looked at.
SELECT
    waits.oldest_at,
    waits.queue_key,
    (
        SELECT count(*)
        FROM (
            SELECT FROM {schema}.runs WHERE queue = $1 AND queue_key = waits.queue_key AND slot = 1 LIMIT $4::bigint
        ) AS lined
    ) AS in_line
FROM (
    SELECT
        line.queue_key,
        min(head.wake_at) AS oldest_at
    FROM (SELECT queue_key, definition FROM {schema}.lines WHERE queue = $1 LIMIT $2::bigint) AS line
    CROSS JOIN LATERAL (
        SELECT run.wake_at
        FROM {schema}.runs AS run
        WHERE
            run.queue = $1 AND run.queue_key = line.queue_key AND run.definition = line.definition AND run.slot = 1
        ORDER BY run.wake_at - run.lead, run.key
        LIMIT 1
    ) AS head
    GROUP BY line.queue_key
    ORDER BY oldest_at, line.queue_key
    LIMIT $3::bigint
) AS waits
