-- For each line of queue $1, by its key in $3, and each definition in $2: its first runs that take no more
-- than $6 slots, $5 more than its number in $4.
SELECT line.queue_key, head.key, head.slots
FROM unnest($3::text[], $4::bigint[]) AS line (queue_key, count)
CROSS JOIN unnest($2::text[]) AS definition (name)
CROSS JOIN LATERAL (
    SELECT run.wake_at - run.lead AS rank, run.key, run.slots
    FROM {schema}.runs AS run
    WHERE
        run.queue = $1 AND run.queue_key = line.queue_key AND run.definition = definition.name AND run.slot = 1
        AND run.slots <= $6::integer
    ORDER BY run.wake_at - run.lead, run.key
    LIMIT line.count + $5::bigint
) AS head
ORDER BY head.rank, head.key
