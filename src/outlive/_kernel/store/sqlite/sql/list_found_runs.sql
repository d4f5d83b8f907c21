-- The first runs of a list that one index finds, as [created_at, id, key].
SELECT json_group_array(json_array(first.created_at, first.id, first.key))
FROM (
    SELECT run.created_at, run.id, run.key
    FROM {source}
    AND {wanted}
    ORDER BY {at} {direction}, run.id {direction}
    LIMIT :limit
) AS first
