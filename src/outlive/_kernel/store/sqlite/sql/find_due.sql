-- For each owner in ?1 and each definition in ?2: the first ?4 runs that are due at ?3 and the one after them, as
-- [wake_at, key]. Each pair is one short walk in the index, however many runs are due, asleep or ended.
SELECT json_group_array(json(due.runs))
FROM (
    SELECT (
        SELECT json_group_array(json_array(found.wake_at, found.key))
        FROM (
            SELECT * FROM (
                SELECT run.wake_at, run.key
                FROM outlive_runs AS run
                WHERE
                    run.owner = owner.value AND run.definition = definition.value
                    AND run.wake_at IS NOT NULL AND run.number = 0 AND run.queue IS NULL AND run.wake_at <= ?3
                ORDER BY run.wake_at, run.key
                LIMIT ?4 + 1
            )
            UNION ALL
            SELECT * FROM (
                SELECT run.wake_at, run.key
                FROM outlive_runs AS run
                WHERE
                    run.owner = owner.value AND run.definition = definition.value
                    AND run.wake_at IS NOT NULL AND run.number = 0 AND run.queue IS NULL AND run.wake_at > ?3
                ORDER BY run.wake_at, run.key
                LIMIT 1
            )
        ) AS found
    ) AS runs
    FROM json_each(?1) AS owner
    CROSS JOIN json_each(?2) AS definition
) AS due
