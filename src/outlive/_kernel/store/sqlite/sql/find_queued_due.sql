-- As find_due.sql, of queue ?5: what is due there and not in line, and the first one after it, as
-- [wake_at, key, slot, slots].
SELECT json_group_array(json(due.runs))
FROM (
    SELECT (
        SELECT json_group_array(json_array(found.wake_at, found.key, found.slot, found.slots))
        FROM (
            SELECT * FROM (
                SELECT run.wake_at, run.key, run.slot, run.slots
                FROM outlive_runs AS run
                WHERE
                    run.owner = owner.value AND run.queue = ?5 AND run.definition = definition.value
                    AND run.queue IS NOT NULL AND run.slot <> 1 AND run.wake_at IS NOT NULL AND run.wake_at <= ?3
                ORDER BY run.wake_at, run.key
                LIMIT ?4 + 1
            )
            UNION ALL
            SELECT * FROM (
                SELECT run.wake_at, run.key, run.slot, run.slots
                FROM outlive_runs AS run
                WHERE
                    run.owner = owner.value AND run.queue = ?5 AND run.definition = definition.value
                    AND run.queue IS NOT NULL AND run.slot <> 1 AND run.wake_at IS NOT NULL AND run.wake_at > ?3
                ORDER BY run.wake_at, run.key
                LIMIT 1
            )
        ) AS found
    ) AS runs
    FROM json_each(?1) AS owner
    CROSS JOIN json_each(?2) AS definition
) AS due
