-- What hangs on these trees (?1, a JSON array of handles) and may refer to blobs.
SELECT body FROM outlive_events
WHERE journal IN (SELECT value FROM json_each(?1)) AND instr(body, x'22626C6F6222')
UNION ALL
SELECT CAST(coalesce(payload, '') || coalesce(ended, '') AS BLOB) FROM outlive_inbox
WHERE journal IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT CAST(answer AS BLOB) FROM outlive_inbox_keys
WHERE journal IN (SELECT value FROM json_each(?1)) AND answer IS NOT NULL
UNION ALL
SELECT CAST(coalesce(result, '') || coalesce(failure, '') AS BLOB) FROM outlive_items
WHERE journal IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT chunk.body
FROM outlive_streams AS stream
JOIN outlive_stream_chunks AS chunk ON chunk.stream = stream.key
WHERE stream.journal IN (SELECT value FROM json_each(?1))
