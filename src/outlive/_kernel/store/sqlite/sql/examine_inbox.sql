-- The messages to the trees in ?1, oldest first.
SELECT
    message.journal,
    message.id,
    message.run,
    CAST(message.kind AS BLOB),
    CAST(message.key AS BLOB),
    EXISTS (SELECT 1 FROM outlive_inbox_keys AS seen WHERE seen.journal = message.journal AND seen.key = message.key)
FROM outlive_inbox AS message
WHERE message.journal IN (SELECT value FROM json_each(?1))
ORDER BY message.id
