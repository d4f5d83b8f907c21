-- The place of each chunk of a stream behind ?1, and its items if they may refer to a blob.
SELECT key, CASE WHEN instr(body, x'22626C6F6222') THEN body END
FROM outlive_stream_chunks
WHERE key > ?1
ORDER BY key
LIMIT ?2
