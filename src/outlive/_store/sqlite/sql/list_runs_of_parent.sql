-- The newest runs that one run started.
SELECT json_group_array(json_array(newest.created_at, newest.id, newest.key))
FROM (
    SELECT run.created_at, run.id, run.key
    FROM outlive_runs AS run INDEXED BY outlive_runs_parent_id_created_at
    WHERE run.parent_id = :parent_id AND {wanted}
    ORDER BY run.created_at DESC, run.id DESC
    LIMIT :limit
) AS newest
