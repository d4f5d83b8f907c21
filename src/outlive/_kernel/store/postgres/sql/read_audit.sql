SELECT entry.number, entry.at, entry.body, entry.hash, entry.actor, entry.verb, entry.target
FROM {schema}.audit AS entry
WHERE entry.number > $1
ORDER BY entry.number
LIMIT $2::integer
