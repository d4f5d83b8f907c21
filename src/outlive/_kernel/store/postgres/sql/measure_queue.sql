-- How many runs of queue $1 are in line, hold a slot, and come later, up to $2 of each; and the ids of up to $3 runs that hold
-- slots.
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
        SELECT coalesce(sum(taken.slots)::bigint, 0)
        FROM (SELECT run.slots FROM {schema}.runs AS run WHERE run.queue = $1 AND run.slot = 2 LIMIT $2::bigint) AS taken
    ) AS slots,
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
    ARRAY(SELECT id FROM {schema}.runs WHERE queue = $1 AND slot = 2 LIMIT $3::bigint) AS holders
