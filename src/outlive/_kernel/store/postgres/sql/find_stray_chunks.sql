-- Chunks that hang on no stream; at most $1.
SELECT DISTINCT chunk.stream
FROM {schema}.stream_chunks AS chunk
WHERE NOT EXISTS (SELECT FROM {schema}.streams AS stream WHERE stream.key = chunk.stream)
LIMIT $1
