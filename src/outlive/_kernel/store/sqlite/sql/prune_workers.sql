-- Forget sessions that are of no use any more: retired, or expired before ?1, and without a tree.
DELETE FROM outlive_workers
WHERE
    (is_retired OR expires_at < ?1)
    AND NOT EXISTS (
        SELECT 1
        FROM outlive_runs
        WHERE owner = outlive_workers.id AND wake_at IS NOT NULL AND number = 0 AND queue IS NULL
    )
    AND NOT EXISTS (
        SELECT 1
        FROM outlive_runs
        WHERE owner = outlive_workers.id AND queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL
    )
