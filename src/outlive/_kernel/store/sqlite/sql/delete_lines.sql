-- Forget the lines of queue ?1 with keys in ?2 and definitions in ?3 in which no run is.
DELETE FROM outlive_lines
WHERE
    queue = ?1
    AND queue_key IN (SELECT value FROM json_each(?2))
    AND definition IN (SELECT value FROM json_each(?3))
    AND NOT EXISTS (
        SELECT 1
        FROM outlive_runs AS run
        WHERE
            run.queue = outlive_lines.queue AND run.queue_key = outlive_lines.queue_key
            AND run.definition = outlive_lines.definition AND run.slot = 1
    )
