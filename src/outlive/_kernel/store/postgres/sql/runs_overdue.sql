-- Runs that had to be begun by now, and were not.
{schema}.runs AS run
WHERE
    run.begin_by < :overdue_at::bigint AND run.finished_at IS NULL
    AND run.created_at BETWEEN :low::bigint AND :high::bigint
