-- Runs that had to be begun by now, and were not.
outlive_runs AS run INDEXED BY outlive_runs_begin_by
WHERE run.begin_by < :overdue_at AND run.finished_at IS NULL AND run.created_at BETWEEN :low AND :high
