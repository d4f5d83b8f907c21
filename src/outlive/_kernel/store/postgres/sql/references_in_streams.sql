-- The place of each chunk of a stream behind ($1, $2), and its items if they may refer to a blob.
SELECT stream, first, CASE WHEN position('\x22626c6f6222'::bytea IN body) > 0 THEN body END
FROM {schema}.stream_chunks
WHERE (stream, first) > ($1, $2)
ORDER BY stream, first
LIMIT $3
