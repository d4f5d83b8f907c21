-- The mail of these trees, oldest first.
SELECT
    mail.journal,
    mail.id,
    mail.run,
    mail.kind,
    mail.key,
    EXISTS (
        SELECT FROM {schema}.inbox_keys AS seen
        WHERE seen.journal = mail.journal AND md5(seen.key) = md5(mail.key)
    )
FROM {schema}.inbox AS mail
WHERE mail.journal = ANY ($1::bigint[])
ORDER BY mail.id
