-- How many slots of queue ?1 each key has.
SELECT json_group_array(json_array(held.queue_key, held.slots))
FROM (
    SELECT queue_key, count(*) AS slots FROM outlive_runs WHERE queue = ?1 AND slot = 2 GROUP BY queue_key
) AS held
