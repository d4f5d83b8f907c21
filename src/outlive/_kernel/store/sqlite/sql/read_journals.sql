-- The events of the journals in ?1 with seq > ?2, at most ?3 of them, as one row: all numbers in one JSON text and all
-- bodies in one blob. A row of its own for each event would hand the interpreter lock to and fro for each event.
SELECT
    json_group_array(json_array(event.journal, event.seq, event.format, event.crc, length(event.body))),
    CAST(group_concat(CAST(event.body AS TEXT), '') AS BLOB)
FROM (
    SELECT found.journal, found.seq, found.format, found.crc, found.body
    FROM json_each(?1) AS wanted
    CROSS JOIN outlive_events AS found ON found.journal = wanted.value
    WHERE found.seq > ?2
    LIMIT ?3
) AS event
