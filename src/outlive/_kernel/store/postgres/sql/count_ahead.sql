-- How many runs are before the run with id $1 in its line, of all definitions, up to $2.
SELECT count(*) AS ahead
FROM (
    SELECT
    FROM {schema}.runs AS own
    JOIN {schema}.lines AS line ON line.queue = own.queue AND line.queue_key = own.queue_key
    JOIN {schema}.runs AS run
        ON run.queue = line.queue AND run.queue_key = line.queue_key AND run.definition = line.definition
        AND run.slot = 1 AND (run.wake_at - run.lead, run.key) < (own.wake_at - own.lead, own.key)
    WHERE own.id = $1 AND own.slot = 1
    LIMIT $2::bigint
) AS before
