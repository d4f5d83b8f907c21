-- How many runs of queue $1 are in line, hold a slot, and come later, up to $2 of each; since when the one waits longest that
-- is first in one of the first $2 lines; and the ids of up to $3 runs that hold slots.
SELECT
    (
        SELECT count(*)
        FROM (SELECT FROM {schema}.runs WHERE queue = $1 AND slot = 1 LIMIT $2::bigint) AS lined
    ) AS in_line,
    (
        SELECT count(*)
        FROM (SELECT FROM {schema}.runs WHERE queue = $1 AND slot = 2 LIMIT $2::bigint) AS held
    ) AS held,
    (
        SELECT count(*)
        FROM (
            SELECT
            FROM {schema}.runs
            WHERE
                owner = '' AND queue = $1 AND queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL AND slot + 0 = 0
            LIMIT $2::bigint
        ) AS outside
    ) AS later,
    (
        SELECT min(head.wake_at)
        FROM (SELECT queue_key, definition FROM {schema}.lines WHERE queue = $1 LIMIT $2::bigint) AS line
        CROSS JOIN LATERAL (
            SELECT run.wake_at
            FROM {schema}.runs AS run
            WHERE
                run.queue = $1 AND run.queue_key = line.queue_key AND run.definition = line.definition AND run.slot = 1
            ORDER BY run.wake_at - run.lead, run.key
            LIMIT 1
        ) AS head
    ) AS oldest_at,
    ARRAY(SELECT id FROM {schema}.runs WHERE queue = $1 AND slot = 2 LIMIT $3::bigint) AS holders
