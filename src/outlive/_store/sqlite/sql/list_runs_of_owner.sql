-- The newest runs that one worker owns. Only roots have an owner, and as long as they have one they are due.
SELECT json_group_array(json_array(newest.created_at, newest.id, newest.key))
FROM (
    SELECT run.created_at, run.id, run.key
    FROM outlive_runs AS run INDEXED BY outlive_runs_owner_definition_wake_at
    WHERE run.owner = :owner AND run.wake_at IS NOT NULL AND run.number = 0 AND {wanted}
    ORDER BY run.created_at DESC, run.id DESC
    LIMIT :limit
) AS newest
