-- The newest runs of one tree.
SELECT json_group_array(json_array(newest.created_at, newest.id, newest.key))
FROM (
    SELECT run.created_at, run.id, run.key
    FROM outlive_runs AS run
    WHERE
        (
            run.key = (SELECT root.key FROM outlive_runs AS root WHERE root.id = :root_id)
            OR (
                run.journal = (SELECT root.key FROM outlive_runs AS root WHERE root.id = :root_id) AND run.number > 0
            )
        )
        AND {wanted}
    ORDER BY run.created_at DESC, run.id DESC
    LIMIT :limit
) AS newest
