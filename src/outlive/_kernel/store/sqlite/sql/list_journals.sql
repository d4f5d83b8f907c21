-- Handles after ?1, at most ?2, each list in the order of an index.
SELECT journal
FROM (
    SELECT * FROM (SELECT key AS journal FROM outlive_runs WHERE key > ?1 AND number <= 0 ORDER BY key LIMIT ?2)
    UNION
    SELECT * FROM (SELECT DISTINCT journal FROM outlive_events WHERE journal > ?1 ORDER BY journal LIMIT ?2)
    UNION
    SELECT * FROM (
        SELECT DISTINCT journal FROM outlive_runs WHERE journal > ?1 AND number > 0 ORDER BY journal LIMIT ?2
    )
    UNION
    SELECT * FROM (SELECT DISTINCT journal FROM outlive_inbox WHERE journal > ?1 ORDER BY journal LIMIT ?2)
    UNION
    SELECT * FROM (SELECT DISTINCT journal FROM outlive_inbox_keys WHERE journal > ?1 ORDER BY journal LIMIT ?2)
    UNION
    SELECT * FROM (SELECT DISTINCT journal FROM outlive_items WHERE journal > ?1 ORDER BY journal LIMIT ?2)
    UNION
    SELECT * FROM (SELECT DISTINCT journal FROM outlive_streams WHERE journal > ?1 ORDER BY journal LIMIT ?2)
)
ORDER BY journal
LIMIT ?2
