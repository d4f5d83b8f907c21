-- Everyone who owns a tree, and worker ?1, with what is known of their leases.
--
-- Steps from owner to owner through the index, so the cost is that of the number of owners, not of runs.
WITH RECURSIVE owners (id) AS (
    SELECT min(owner) FROM outlive_runs WHERE wake_at IS NOT NULL AND number = 0 AND owner > ''
    UNION ALL
    SELECT (SELECT min(owner) FROM outlive_runs WHERE wake_at IS NOT NULL AND number = 0 AND owner > owners.id)
    FROM owners
    WHERE owners.id IS NOT NULL
)
SELECT json_group_array(json_array(one.id, worker.expires_at, worker.is_retired, worker.lock_file))
FROM (SELECT id FROM owners WHERE id IS NOT NULL UNION SELECT ?1) AS one
LEFT JOIN outlive_workers AS worker ON worker.id = one.id
