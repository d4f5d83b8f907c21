-- The first runs of a list, as [created_at, id, key], a list for each group of equal workflow, status and being a child.
{groups}
SELECT json_group_array(json(page.runs))
FROM (
    SELECT (
        SELECT json_group_array(json_array(first.created_at, first.id, first.key))
        FROM (
            SELECT run.created_at, run.id, run.key
            FROM outlive_runs AS run INDEXED BY outlive_runs_workflow_status_number_created_at
            WHERE
                run.workflow = groups.workflow AND run.status = groups.status AND (run.number > 0) = groups.is_child
                AND run.created_at BETWEEN :low AND :high
                AND {wanted}
            ORDER BY run.created_at {direction}, run.id {direction}
            LIMIT :limit
        ) AS first
    ) AS runs
    FROM groups
    WHERE {wanted_groups}
) AS page
