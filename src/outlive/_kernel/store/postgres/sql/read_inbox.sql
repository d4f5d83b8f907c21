SELECT message.journal, message.id, message.run, message.kind, message.at, message.name, message.key, message.payload, message.ended
FROM {schema}.inbox AS message
WHERE message.journal = ANY ($1::bigint[])
ORDER BY message.id
