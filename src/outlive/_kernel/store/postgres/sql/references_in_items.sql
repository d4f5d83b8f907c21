-- The place of each outcome of an item behind ($1, $2, $3), and what it says if that may refer to a blob.
SELECT journal, run, index, CASE WHEN concat(result, failure) LIKE '%"blob"%' THEN concat(result, failure) END
FROM {schema}.items
WHERE (journal, run, index) > ($1, $2, $3)
ORDER BY journal, run, index
LIMIT $4
