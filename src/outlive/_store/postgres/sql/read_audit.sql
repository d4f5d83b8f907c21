SELECT entry.number, entry.at, entry.body, entry.hash
FROM {schema}.audit AS entry
WHERE entry.number > $1
ORDER BY entry.number
LIMIT $2::integer
