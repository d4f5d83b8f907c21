-- How many slots of queue $1 each key has.
SELECT queue_key, count(*) AS slots FROM {schema}.runs WHERE queue = $1 AND slot = 2 GROUP BY queue_key
