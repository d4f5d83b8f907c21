-- The rows of these trees, each as one JSON text.
SELECT json_build_array({run_columns})::text
FROM (
    SELECT * FROM {schema}.runs AS root WHERE root.key = ANY ($1::bigint[]) AND root.number <= 0
    UNION ALL
    SELECT * FROM {schema}.runs AS child WHERE child.journal = ANY ($1::bigint[]) AND child.number > 0
) AS run
ORDER BY run.number, run.key
