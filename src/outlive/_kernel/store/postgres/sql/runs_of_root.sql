-- The runs of one tree.
{schema}.runs AS run
WHERE
    (
        run.key = (SELECT root.key FROM {schema}.runs AS root WHERE root.id = :root_id::text)
        OR (
            run.journal = (SELECT root.key FROM {schema}.runs AS root WHERE root.id = :root_id::text) AND run.number > 0
        )
    )
