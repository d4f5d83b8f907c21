-- All groups of equal workflow, status and being a child; included in list_runs.sql and its kin. Steps from group to
-- group through the index: the cost is that of the number of groups, not of runs.
WITH RECURSIVE groups (workflow, status, is_child) AS (
    (
        SELECT run.workflow, run.status, run.number > 0
        FROM {schema}.runs AS run
        ORDER BY run.workflow, run.status, run.number > 0
        LIMIT 1
    )
    UNION ALL
    SELECT next.workflow, next.status, next.is_child
    FROM groups
    CROSS JOIN LATERAL (
        SELECT run.workflow, run.status, run.number > 0 AS is_child
        FROM {schema}.runs AS run
        WHERE (run.workflow, run.status, run.number > 0) > (groups.workflow, groups.status, groups.is_child)
        ORDER BY run.workflow, run.status, run.number > 0
        LIMIT 1
    ) AS next
)
