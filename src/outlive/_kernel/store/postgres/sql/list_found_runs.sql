-- The first runs of a list that one index finds.
SELECT {run_columns}
FROM {source}
AND {wanted}
ORDER BY {at} {direction}, run.id {direction}
LIMIT :limit::bigint
