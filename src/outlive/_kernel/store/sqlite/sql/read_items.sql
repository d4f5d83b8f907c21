SELECT json_group_array(json_array(item.run, item."index", item.result, item.failure))
FROM (
    SELECT found.run, found."index", found.result, found.failure
    FROM outlive_runs AS run
    CROSS JOIN outlive_items AS found ON found.journal = run.journal AND found.run = run.number
    WHERE run.id = ?1 AND found."index" > ?2
    ORDER BY found."index"
    LIMIT ?3
) AS item
