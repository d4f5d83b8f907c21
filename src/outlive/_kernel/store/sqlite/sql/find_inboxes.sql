-- Trees of worker ?1 that have message. Steps from tree to tree through the index of the inbox, which is mostly empty.
WITH RECURSIVE trees (journal) AS (
    SELECT min(journal) FROM outlive_inbox
    UNION ALL
    SELECT (SELECT min(journal) FROM outlive_inbox WHERE journal > trees.journal)
    FROM trees
    WHERE trees.journal IS NOT NULL
)
SELECT json_group_array(trees.journal)
FROM trees
CROSS JOIN outlive_runs AS root ON root.key = trees.journal
WHERE root.owner = ?1
