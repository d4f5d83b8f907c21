-- The newest runs, as [created_at, id, key], a list for each group of equal workflow, status and being a child.
--
-- Steps from group to group through the index, and takes the newest of each: the cost is that of the number of
-- groups and of the page, not of runs.
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
SELECT json_group_array(json(page.runs))
FROM (
    SELECT (
        SELECT json_group_array(json_array(newest.created_at, newest.id, newest.key))
        FROM (
            SELECT run.created_at, run.id, run.key
            FROM outlive_runs AS run INDEXED BY outlive_runs_workflow_status_number_created_at
            WHERE
                run.workflow = groups.workflow AND run.status = groups.status AND (run.number > 0) = groups.is_child
                AND run.created_at <= coalesce(:before, 9223372036854775807)
                AND {wanted}
            ORDER BY run.created_at DESC, run.id DESC
            LIMIT :limit
        ) AS newest
    ) AS runs
    FROM groups
    WHERE
        (:workflow IS NULL OR groups.workflow = :workflow)
        AND (
    :statuses IS NULL OR groups.status IN (SELECT value FROM json_each(:statuses))
    OR (groups.status NOT IN {stored} AND 'damaged' IN (SELECT value FROM json_each(:statuses)))
)
        AND (NOT :roots_only OR NOT groups.is_child)
) AS page
