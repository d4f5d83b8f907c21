-- The runs that were started in one queue.
{schema}.runs AS run
WHERE
    run.queue IS NOT NULL AND run.queue = :queue::text
    AND run.created_at BETWEEN :low::bigint AND :high::bigint
