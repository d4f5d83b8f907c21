-- Item results: (journal, run, index, result, failure); recorded once, never changed. Rows of NULLs are padding.
INSERT OR IGNORE INTO outlive_items (journal, run, "index", result, failure)
SELECT new.column1, new.column2, new.column3, new.column4, new.column5
FROM (VALUES (?, ?, ?, ?, ?)) AS new
WHERE new.column1 IS NOT NULL
