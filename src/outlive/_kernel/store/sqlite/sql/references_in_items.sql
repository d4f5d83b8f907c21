-- The place of each outcome of an item behind (?1, ?2, ?3), and what it says if that may refer to a blob.
SELECT
    journal,
    run,
    "index",
    CASE
        WHEN instr(coalesce(result, '') || coalesce(failure, ''), '"blob"')
            THEN CAST(coalesce(result, '') || coalesce(failure, '') AS BLOB)
    END
FROM outlive_items
WHERE (journal, run, "index") > (?1, ?2, ?3)
ORDER BY journal, run, "index"
LIMIT ?4
