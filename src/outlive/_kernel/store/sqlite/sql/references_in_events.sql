-- The place of each event behind ?1, and the event if it may refer to a blob.
SELECT key, CASE WHEN instr(body, x'22626C6F6222') THEN body END
FROM outlive_events
WHERE key > ?1
ORDER BY key
LIMIT ?2
