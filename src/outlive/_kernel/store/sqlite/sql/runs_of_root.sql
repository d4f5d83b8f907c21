-- The runs of one tree.
outlive_runs AS run
WHERE
    (
        run.key = (SELECT root.key FROM outlive_runs AS root WHERE root.id = :root_id)
        OR (run.journal = (SELECT root.key FROM outlive_runs AS root WHERE root.id = :root_id) AND run.number > 0)
    )
