-- Handles after ?1, at most ?2 of each kind. Steps from journal to journal through the indexes.
WITH RECURSIVE
of_events (journal) AS (
    SELECT min(journal) FROM outlive_events WHERE journal > ?1
    UNION ALL
    SELECT (SELECT min(journal) FROM outlive_events WHERE journal > of_events.journal)
    FROM of_events
    WHERE of_events.journal IS NOT NULL
    LIMIT ?2
),
of_children (journal) AS (
    SELECT min(journal) FROM outlive_runs WHERE number > 0 AND journal > ?1
    UNION ALL
    SELECT (SELECT min(journal) FROM outlive_runs WHERE number > 0 AND journal > of_children.journal)
    FROM of_children
    WHERE of_children.journal IS NOT NULL
    LIMIT ?2
),
of_mail (journal) AS (
    SELECT min(journal) FROM outlive_inbox WHERE journal > ?1
    UNION ALL
    SELECT (SELECT min(journal) FROM outlive_inbox WHERE journal > of_mail.journal)
    FROM of_mail
    WHERE of_mail.journal IS NOT NULL
    LIMIT ?2
),
of_keys (journal) AS (
    SELECT min(journal) FROM outlive_inbox_keys WHERE journal > ?1
    UNION ALL
    SELECT (SELECT min(journal) FROM outlive_inbox_keys WHERE journal > of_keys.journal)
    FROM of_keys
    WHERE of_keys.journal IS NOT NULL
    LIMIT ?2
),
of_items (journal) AS (
    SELECT min(journal) FROM outlive_items WHERE journal > ?1
    UNION ALL
    SELECT (SELECT min(journal) FROM outlive_items WHERE journal > of_items.journal)
    FROM of_items
    WHERE of_items.journal IS NOT NULL
    LIMIT ?2
)
SELECT journal
FROM (
    SELECT * FROM (SELECT key AS journal FROM outlive_runs WHERE key > ?1 AND number <= 0 ORDER BY key LIMIT ?2)
    UNION
    SELECT journal FROM of_events
    UNION
    SELECT journal FROM of_children
    UNION
    SELECT journal FROM of_mail
    UNION
    SELECT journal FROM of_keys
    UNION
    SELECT journal FROM of_items
)
WHERE journal IS NOT NULL
ORDER BY journal
LIMIT ?2
