-- The place of each message behind $1, and what it says if that may refer to a blob.
SELECT id, CASE WHEN concat(payload, ended) LIKE '%"blob"%' THEN concat(payload, ended) END
FROM {schema}.inbox
WHERE id > $1
ORDER BY id
LIMIT $2
