SELECT item.journal, item.run, count(*), min(item.index), max(item.index)
FROM {schema}.items AS item
WHERE item.journal = ANY ($1::bigint[])
GROUP BY item.journal, item.run
ORDER BY item.journal, item.run
