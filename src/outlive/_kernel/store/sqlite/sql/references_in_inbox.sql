-- The place of each message behind ?1, and what it says if that may refer to a blob.
SELECT
    id,
    CASE
        WHEN instr(coalesce(payload, '') || coalesce(ended, ''), '"blob"')
            THEN CAST(coalesce(payload, '') || coalesce(ended, '') AS BLOB)
    END
FROM outlive_inbox
WHERE id > ?1
ORDER BY id
LIMIT ?2
