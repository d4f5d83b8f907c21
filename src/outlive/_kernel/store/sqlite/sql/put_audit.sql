INSERT INTO outlive_audit (number, at, actor, verb, target, body, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
