SELECT json_group_array(json_array(
    mail.journal, mail.id, mail.run, mail.kind, mail.at, mail.name, mail.key, mail.payload, mail.ended
))
FROM outlive_inbox AS mail
WHERE mail.journal IN (SELECT value FROM json_each(?1))
