-- The runs that ended in time.
outlive_runs AS run INDEXED BY outlive_runs_finished_at
WHERE run.finished_at >= :finished_low AND run.finished_at < :finished_high
