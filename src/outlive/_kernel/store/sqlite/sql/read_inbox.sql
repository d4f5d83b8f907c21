SELECT json_group_array(json_array(
    message.journal, message.id, message.run, message.kind, message.at, message.name, message.key, message.payload, message.ended
))
FROM outlive_inbox AS message
WHERE message.journal IN (SELECT value FROM json_each(?1))
