-- Where these journals end, and whether anything may follow.
SELECT tail.journal, tail.seq, tail.is_last, tail.crc
FROM unnest($1::bigint[]) AS wanted (journal)
CROSS JOIN LATERAL (
    SELECT event.journal, event.seq, event.is_last, event.crc
    FROM {schema}.events AS event
    WHERE event.journal = wanted.journal
    ORDER BY event.seq DESC
    LIMIT 1
) AS tail
