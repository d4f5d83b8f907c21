-- Forget sessions that are of no use any more: retired, or expired before ?1, and without a tree.
DELETE FROM outlive_workers
WHERE
    (is_retired OR expires_at < ?1)
    AND NOT EXISTS (
        SELECT 1
        FROM outlive_runs
        WHERE outlive_runs.owner = outlive_workers.id AND outlive_runs.wake_at IS NOT NULL AND outlive_runs.number = 0
    )
