-- For each definition in ?2 the first ?4 lines of queue ?1 as [queue_key, turn], without the keys in ?3.
SELECT json_group_array(json(found.lines))
FROM (
    SELECT (
        SELECT json_group_array(json_array(line.queue_key, line.turn))
        FROM (
            SELECT queue_key, turn
            FROM outlive_lines
            WHERE
                queue = ?1 AND definition = wanted.value
                AND queue_key NOT IN (SELECT value FROM json_each(?3))
            ORDER BY turn
            LIMIT ?4
        ) AS line
    ) AS lines
    FROM json_each(?2) AS wanted
) AS found
