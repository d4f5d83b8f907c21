-- All groups of equal workflow, status and being a child; included in list_runs.sql and its kin. Steps from group to
-- group through the index: the cost is that of the number of groups, not of runs.
WITH RECURSIVE groups (workflow, status, is_child) AS (
    SELECT * FROM (
        SELECT workflow, status, number > 0
        FROM outlive_runs
        ORDER BY workflow, status, number > 0
        LIMIT 1
    )
    UNION ALL
    SELECT next.workflow, next.status, next.number > 0
    FROM groups
    -- One step each for the last, the middle and the first column: SQLite would not seek with all three at once.
    CROSS JOIN outlive_runs AS next ON next.key = coalesce(
        (
            SELECT run.key
            FROM outlive_runs AS run
            WHERE run.workflow = groups.workflow AND run.status = groups.status AND (run.number > 0) > groups.is_child
            ORDER BY run.number > 0
            LIMIT 1
        ),
        (
            SELECT run.key
            FROM outlive_runs AS run
            WHERE run.workflow = groups.workflow AND run.status > groups.status
            ORDER BY run.status, run.number > 0
            LIMIT 1
        ),
        (
            SELECT run.key
            FROM outlive_runs AS run
            WHERE run.workflow > groups.workflow
            ORDER BY run.workflow, run.status, run.number > 0
            LIMIT 1
        )
    )
)
