-- The runs of the wanted groups that were created in time; included in count_runs.sql and measure_runs.sql.
groups
CROSS JOIN outlive_runs AS run INDEXED BY outlive_runs_workflow_status_number_created_at
WHERE
    run.workflow = groups.workflow AND run.status = groups.status AND (run.number > 0) = groups.is_child
    AND run.created_at BETWEEN :low AND :high
    AND {wanted_groups}
