SELECT item.journal, item.run, count(*), min(item."index"), max(item."index")
FROM outlive_items AS item
WHERE item.journal IN (SELECT value FROM json_each(?1))
GROUP BY item.journal, item.run
ORDER BY item.journal, item.run
