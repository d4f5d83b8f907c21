SELECT json_group_array(json_array(
    worker.id, worker.name, worker.definitions, worker.started_at, worker.expires_at, worker.is_retired,
    worker.lock_file, worker.process, worker.lease,
    CASE WHEN ?1 THEN (
        SELECT count(*)
        FROM outlive_runs
        WHERE outlive_runs.owner = worker.id AND outlive_runs.wake_at IS NOT NULL AND outlive_runs.number = 0
    ) ELSE 0 END
))
FROM (SELECT * FROM outlive_workers ORDER BY started_at, id) AS worker
