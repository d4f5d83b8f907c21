-- Everyone who owns a tree, and worker ?1, with what is known of their leases; and whether any queue has something to claim.
--
-- Steps from owner to owner through two indexes, so the cost is that of the number of owners, not of runs.
WITH RECURSIVE owners (id) AS (
    SELECT min(owner) FROM outlive_runs WHERE wake_at IS NOT NULL AND number = 0 AND queue IS NULL AND owner > ''
    UNION ALL
    SELECT (
        SELECT min(owner)
        FROM outlive_runs
        WHERE wake_at IS NOT NULL AND number = 0 AND queue IS NULL AND owner > owners.id
    )
    FROM owners
    WHERE owners.id IS NOT NULL
),
queue_owners (id) AS (
    SELECT min(owner) FROM outlive_runs WHERE queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL AND owner > ''
    UNION ALL
    SELECT (
        SELECT min(owner)
        FROM outlive_runs
        WHERE queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL AND owner > queue_owners.id
    )
    FROM queue_owners
    WHERE queue_owners.id IS NOT NULL
)
SELECT json_array(
    json_group_array(json_array(one.id, worker.expires_at, worker.is_retired, worker.lock_file)),
    EXISTS (SELECT 1 FROM outlive_lines)
    OR EXISTS (SELECT 1 FROM outlive_runs WHERE queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL)
)
FROM (
    SELECT id FROM owners WHERE id IS NOT NULL
    UNION
    SELECT id FROM queue_owners WHERE id IS NOT NULL
    UNION
    SELECT ?1
) AS one
LEFT JOIN outlive_workers AS worker ON worker.id = one.id
