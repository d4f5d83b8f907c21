-- The ?3 keys of queue ?1 that wait longest, as [since when, key, runs in line up to ?4]. A key waits since the oldest of the runs
-- that are first in its lines; the first ?2 lines are looked at.
SELECT json_group_array(
    json_array(
        waits.oldest_at,
        waits.queue_key,
        (
            SELECT count(*)
            FROM (SELECT 1 FROM outlive_runs WHERE queue = ?1 AND queue_key = waits.queue_key AND slot = 1 LIMIT ?4)
        )
    )
)
FROM (
    SELECT
        head.queue_key,
        min(head.wake_at) AS oldest_at
    FROM (
        SELECT
            line.queue_key,
            (
                SELECT run.wake_at
                FROM outlive_runs AS run
                WHERE
                    run.queue = ?1 AND run.queue_key = line.queue_key AND run.definition = line.definition
                    AND run.slot = 1
                ORDER BY run.wake_at - run.lead
                LIMIT 1
            ) AS wake_at
        FROM (SELECT queue_key, definition FROM outlive_lines WHERE queue = ?1 LIMIT ?2) AS line
    ) AS head
    WHERE head.wake_at IS NOT NULL
    GROUP BY head.queue_key
    ORDER BY oldest_at, head.queue_key
    LIMIT ?3
) AS waits
