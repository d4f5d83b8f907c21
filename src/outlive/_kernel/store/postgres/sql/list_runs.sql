-- The first runs of a list: those of each group of equal workflow, status and being a child, and of these the first.
{groups}
SELECT {run_columns}
FROM (
    SELECT first.key, first.created_at, first.id
    FROM groups
    CROSS JOIN LATERAL (
        SELECT run.key, run.created_at, run.id
        FROM {runs_of_group}
        AND {wanted}
        ORDER BY run.created_at {direction}, run.id {direction}
        LIMIT :limit::bigint
    ) AS first
    WHERE {wanted_groups}
    ORDER BY first.created_at {direction}, first.id {direction}
    LIMIT :limit::bigint
) AS page
JOIN {schema}.runs AS run ON run.key = page.key
ORDER BY run.created_at {direction}, run.id {direction}
