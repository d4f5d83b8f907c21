-- The runs that were started in one queue.
outlive_runs AS run INDEXED BY outlive_runs_queue_created_at
WHERE run.queue IS NOT NULL AND run.queue = :queue AND run.created_at BETWEEN :low AND :high
