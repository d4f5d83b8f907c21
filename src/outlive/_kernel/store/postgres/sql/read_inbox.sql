SELECT mail.journal, mail.id, mail.run, mail.kind, mail.at, mail.name, mail.key, mail.payload, mail.ended
FROM {schema}.inbox AS mail
WHERE mail.journal = ANY ($1::bigint[])
ORDER BY mail.id
