-- The runs of one group that were created in time; included in list_runs.sql and its kin.
{schema}.runs AS run
WHERE
    run.workflow = groups.workflow AND run.status = groups.status AND (run.number > 0) = groups.is_child
    AND run.created_at BETWEEN :low::bigint AND :high::bigint
