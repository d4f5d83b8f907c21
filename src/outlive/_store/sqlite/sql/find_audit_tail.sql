SELECT number, at, body, hash FROM outlive_audit ORDER BY number DESC LIMIT 1
