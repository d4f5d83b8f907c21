-- The place of each key behind (?1, ?2), and its answer if that may refer to a blob.
SELECT journal, key, CASE WHEN instr(answer, '"blob"') THEN CAST(answer AS BLOB) END
FROM outlive_inbox_keys
WHERE (journal, key) > (?1, ?2)
ORDER BY journal, key
LIMIT ?3
