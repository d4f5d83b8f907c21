-- The place of each request behind $1, and what was asked for if that may refer to a blob.
SELECT run_id, CASE WHEN tree LIKE '%"blob"%' THEN tree END
FROM {schema}.requests
WHERE run_id > $1
ORDER BY run_id
LIMIT $2
