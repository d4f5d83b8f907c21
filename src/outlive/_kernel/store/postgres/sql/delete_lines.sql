-- Forget those of the lines of queue $1, by key in $2 and definition in $3, all of them locked, in which no run is.
DELETE FROM {schema}.lines AS line
USING unnest($2::text[], $3::text[]) AS found (queue_key, definition)
WHERE
    line.queue = $1 AND line.queue_key = found.queue_key AND line.definition = found.definition
    AND NOT EXISTS (
        SELECT
        FROM {schema}.runs AS run
        WHERE
            run.queue = line.queue AND run.queue_key = line.queue_key AND run.definition = line.definition
            AND run.slot = 1
    )
