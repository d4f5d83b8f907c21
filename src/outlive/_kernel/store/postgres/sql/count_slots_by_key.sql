-- How many runs of queue $1 each key has under way.
SELECT queue_key, count(*) AS runs FROM {schema}.runs WHERE queue = $1 AND slot = 2 GROUP BY queue_key
