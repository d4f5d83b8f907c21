-- The place of each event behind ($1, $2), and the event if it may refer to a blob.
SELECT journal, seq, CASE WHEN position('\x22626c6f6222'::bytea IN body) > 0 THEN body END
FROM {schema}.events
WHERE (journal, seq) > ($1, $2)
ORDER BY journal, seq
LIMIT $3
