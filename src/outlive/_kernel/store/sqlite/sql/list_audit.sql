SELECT number, at, CAST(body AS BLOB), CAST(hash AS BLOB)
FROM outlive_audit
WHERE
    number < coalesce(?1, 9223372036854775807)
    AND (?3 IS NULL OR actor = ?3)
    AND (?4 IS NULL OR verb = ?4)
    AND (?5 IS NULL OR at >= ?5)
    AND (?6 IS NULL OR at < ?6)
ORDER BY number DESC
LIMIT ?2
