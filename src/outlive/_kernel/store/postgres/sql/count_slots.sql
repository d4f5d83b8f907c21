-- How many slots of queue $1 are taken, and how many of them worker $2 has: by up to $3 and $4 runs.
SELECT
    (
        SELECT coalesce(sum(held.slots)::bigint, 0)
        FROM (SELECT run.slots FROM {schema}.runs AS run WHERE run.queue = $1 AND run.slot = 2 LIMIT $3::bigint) AS held
    ) AS in_all,
    (
        SELECT coalesce(sum(own.slots)::bigint, 0)
        FROM (
            SELECT run.slots
            FROM {schema}.runs AS run
            WHERE
                run.owner = $2 AND run.queue = $1 AND run.queue IS NOT NULL AND run.slot <> 1
                AND run.wake_at IS NOT NULL
            LIMIT $4::bigint
        ) AS own
    ) AS by_worker
