SELECT event.journal, event.seq, event.format, event.crc, event.body
FROM {schema}.events AS event
WHERE event.journal = ANY ($1::bigint[])
ORDER BY event.journal, event.seq
