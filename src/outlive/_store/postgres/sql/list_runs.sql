-- The newest runs that fit.
--
-- Steps from group to group of equal workflow, status and being a child through the index, and takes the newest of each:
-- the cost is that of the number of groups and of the page, not of runs.
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
SELECT {run_columns}
FROM (
    SELECT newest.key, newest.created_at, newest.id
    FROM groups
    CROSS JOIN LATERAL (
        SELECT run.key, run.created_at, run.id
        FROM {schema}.runs AS run
        WHERE
            run.workflow = groups.workflow AND run.status = groups.status AND (run.number > 0) = groups.is_child
            AND run.created_at <= coalesce($1::bigint, 9223372036854775807)
            AND {wanted}
        ORDER BY run.created_at DESC, run.id DESC
        LIMIT $3
    ) AS newest
    WHERE
        ($5::text IS NULL OR groups.workflow = $5::text)
        AND (
    $4::text[] IS NULL OR groups.status = ANY ($4::text[])
    OR (groups.status NOT IN {stored} AND 'damaged' = ANY ($4::text[]))
)
        AND (NOT $9::boolean OR NOT groups.is_child)
    ORDER BY newest.created_at DESC, newest.id DESC
    LIMIT $3
) AS page
JOIN {schema}.runs AS run ON run.key = page.key
ORDER BY run.created_at DESC, run.id DESC
