SELECT number, at, body, hash, actor, verb, target FROM outlive_audit WHERE number > ?1 ORDER BY number LIMIT ?2
