-- The mail of the trees in ?1, oldest first.
SELECT
    mail.journal,
    mail.id,
    mail.run,
    CAST(mail.kind AS BLOB),
    CAST(mail.key AS BLOB),
    EXISTS (SELECT 1 FROM outlive_inbox_keys AS seen WHERE seen.journal = mail.journal AND seen.key = mail.key)
FROM outlive_inbox AS mail
WHERE mail.journal IN (SELECT value FROM json_each(?1))
ORDER BY mail.id
