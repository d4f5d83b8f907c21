-- How many events each of these journals has, where it ends, and which of them are marked as the last.
SELECT
    event.journal,
    count(*),
    max(event.seq),
    coalesce(array_agg(event.seq ORDER BY event.seq) FILTER (WHERE event.is_last), '{}')
FROM {schema}.events AS event
WHERE event.journal = ANY ($1::bigint[])
GROUP BY event.journal
