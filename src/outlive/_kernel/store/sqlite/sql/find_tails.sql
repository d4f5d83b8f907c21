-- The last events of these journals, in the form of read_journals.sql; those that nothing can follow are left out.
SELECT
    json_group_array(json_array(last.journal, last.seq, last.format, last.crc, length(last.body))),
    CAST(group_concat(CAST(last.body AS TEXT), '') AS BLOB)
FROM (
    SELECT
        wanted.value AS journal,
        (SELECT max(seq) FROM outlive_events WHERE outlive_events.journal = wanted.value) AS seq
    FROM json_each(?1) AS wanted
) AS tail
JOIN outlive_events AS last ON last.journal = tail.journal AND last.seq = tail.seq
WHERE NOT last.is_last
