-- How many events each journal in ?1 has, where it ends, and which of them are marked as the last.
SELECT
    event.journal,
    count(*),
    max(event.seq),
    json_group_array(json_array(event.seq, event.is_last)) FILTER (WHERE event.is_last <> 0)
FROM json_each(?1) AS wanted
CROSS JOIN outlive_events AS event ON event.journal = wanted.value
GROUP BY event.journal
