SELECT json_group_array(json_array(
    worker.id, worker.name, worker.definitions, worker.started_at, worker.expires_at, worker.is_retired,
    worker.lock_file, worker.process, worker.lease,
    CASE WHEN ?1 THEN (
        SELECT count(*)
        FROM outlive_runs
        WHERE owner = worker.id AND wake_at IS NOT NULL AND number = 0 AND queue IS NULL
    ) + (
        SELECT count(*)
        FROM outlive_runs
        WHERE owner = worker.id AND queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL
    ) ELSE 0 END
))
FROM (SELECT * FROM outlive_workers ORDER BY started_at, id) AS worker
