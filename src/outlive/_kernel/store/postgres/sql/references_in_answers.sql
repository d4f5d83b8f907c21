-- The place of each key behind ($1, $2), and its answer if that may refer to a blob.
SELECT journal, md5(key), CASE WHEN answer LIKE '%"blob"%' THEN answer END
FROM {schema}.inbox_keys
WHERE (journal, md5(key)) > ($1, $2)
ORDER BY journal, md5(key)
LIMIT $3
