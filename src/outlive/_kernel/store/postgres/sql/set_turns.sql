-- The turns $3 of the keys $2 of queue $1.
UPDATE {schema}.lines AS line
SET turn = new.turn
FROM unnest($2::text[], $3::double precision[]) AS new (queue_key, turn)
WHERE line.queue = $1 AND line.queue_key = new.queue_key
