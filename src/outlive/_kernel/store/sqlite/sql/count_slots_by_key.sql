-- How many runs of queue ?1 each key has under way.
SELECT json_group_array(json_array(held.queue_key, held.runs))
FROM (
    SELECT queue_key, count(*) AS runs FROM outlive_runs WHERE queue = ?1 AND slot = 2 GROUP BY queue_key
) AS held
