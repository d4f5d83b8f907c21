-- Those of the lines of queue $1 with keys in $2 and definitions in $3 that no start is about to put a run into.
SELECT line.queue_key, line.definition
FROM {schema}.lines AS line
WHERE line.queue = $1 AND line.queue_key = ANY ($2::text[]) AND line.definition = ANY ($3::text[])
FOR UPDATE SKIP LOCKED
