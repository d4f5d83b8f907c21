SELECT seen.journal, CAST(seen.key AS BLOB), seen.answer IS NOT NULL
FROM outlive_inbox_keys AS seen
WHERE seen.journal IN (SELECT value FROM json_each(?1))
