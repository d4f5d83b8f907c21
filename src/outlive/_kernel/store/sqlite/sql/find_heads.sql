-- For each line of queue ?1, by its key in ?3, and each definition in ?2: its first ?4 runs that take no more
-- than ?5 slots, as [queue_key, rank, key, slots].
SELECT json_group_array(json(found.heads))
FROM (
    SELECT (
        SELECT json_group_array(json_array(line.value, head.rank, head.key, head.slots))
        FROM (
            SELECT run.wake_at - run.lead AS rank, run.key, run.slots
            FROM outlive_runs AS run
            WHERE
                run.queue = ?1 AND run.queue_key = line.value AND run.definition = wanted.value AND run.slot = 1
                AND run.slots <= ?5
            ORDER BY run.wake_at - run.lead, run.key
            LIMIT ?4
        ) AS head
    ) AS heads
    FROM json_each(?3) AS line
    CROSS JOIN json_each(?2) AS wanted
) AS found
