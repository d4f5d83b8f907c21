SELECT
    number,
    at,
    CAST(body AS BLOB),
    CAST(hash AS BLOB),
    CAST(actor AS BLOB),
    CAST(verb AS BLOB),
    CAST(target AS BLOB)
FROM outlive_audit
WHERE number > ?1
ORDER BY number
LIMIT ?2
