-- Chunks that hang on no stream.
SELECT DISTINCT chunk.stream
FROM outlive_stream_chunks AS chunk
WHERE NOT EXISTS (SELECT 1 FROM outlive_streams AS stream WHERE stream.key = chunk.stream)
LIMIT ?1
