-- Answers: (journal, key, answer); written once, never changed. Rows of NULLs are padding.
UPDATE outlive_inbox_keys
SET answer = new.column3
FROM (VALUES (?, ?, ?)) AS new
WHERE
    outlive_inbox_keys.journal = new.column1
    AND outlive_inbox_keys.key = new.column2
    AND outlive_inbox_keys.answer IS NULL
