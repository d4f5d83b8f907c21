-- The newest runs of one tree.
SELECT {run_columns}
FROM {schema}.runs AS run
WHERE
    (
        run.key = (SELECT root.key FROM {schema}.runs AS root WHERE root.id = $6)
        OR (
            run.journal = (SELECT root.key FROM {schema}.runs AS root WHERE root.id = $6) AND run.number > 0
        )
    )
    AND {wanted}
ORDER BY run.created_at DESC, run.id DESC
LIMIT $3
