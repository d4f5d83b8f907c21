-- For each definition in $2 the first $4 lines of queue $1, without the keys in $3.
SELECT line.queue_key, line.turn
FROM unnest($2::text[]) AS definition (name)
CROSS JOIN LATERAL (
    SELECT known.queue_key, known.turn
    FROM {schema}.lines AS known
    WHERE known.queue = $1 AND known.definition = definition.name AND known.queue_key <> ALL ($3::text[])
    ORDER BY known.turn
    LIMIT $4::bigint
) AS line
ORDER BY line.turn
