-- The runs that ended in time.
{schema}.runs AS run
WHERE run.finished_at >= :finished_low::bigint AND run.finished_at < :finished_high::bigint
