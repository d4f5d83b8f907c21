-- The messages to these trees, oldest first.
SELECT
    message.journal,
    message.id,
    message.run,
    message.kind,
    message.key,
    EXISTS (
        SELECT FROM {schema}.inbox_keys AS seen
        WHERE seen.journal = message.journal AND md5(seen.key) = md5(message.key)
    )
FROM {schema}.inbox AS message
WHERE message.journal = ANY ($1::bigint[])
ORDER BY message.id
