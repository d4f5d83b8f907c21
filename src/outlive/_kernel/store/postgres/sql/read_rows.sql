-- Events of one journal after a seq.
SELECT event.seq, event.format, event.crc, event.body
FROM {schema}.events AS event
WHERE event.journal = $1 AND event.seq > $2
ORDER BY event.seq
LIMIT $3
