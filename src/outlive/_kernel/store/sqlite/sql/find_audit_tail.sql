SELECT number, at, CAST(body AS BLOB), CAST(hash AS BLOB) FROM outlive_audit ORDER BY number DESC LIMIT 1
