SELECT item.run, item.index, item.result, item.failure
FROM {schema}.runs AS run
JOIN {schema}.items AS item ON item.journal = run.journal AND item.run = run.number
WHERE run.id = $1 AND item.index > $2
ORDER BY item.index
LIMIT $3
