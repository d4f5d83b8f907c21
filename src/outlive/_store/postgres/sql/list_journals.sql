-- Handles after $1, at most $2. Steps from journal to journal through the indexes; a limit ends the steps.
WITH RECURSIVE
of_events (journal) AS (
    (SELECT one.journal FROM {schema}.events AS one WHERE one.journal > $1 ORDER BY one.journal LIMIT 1)
    UNION ALL
    SELECT next.journal
    FROM of_events
    CROSS JOIN LATERAL (
        SELECT one.journal
        FROM {schema}.events AS one
        WHERE one.journal > of_events.journal
        ORDER BY one.journal
        LIMIT 1
    ) AS next
),
of_children (journal) AS (
    (SELECT one.journal FROM {schema}.runs AS one WHERE one.number > 0 AND one.journal > $1 ORDER BY one.journal LIMIT 1)
    UNION ALL
    SELECT next.journal
    FROM of_children
    CROSS JOIN LATERAL (
        SELECT one.journal
        FROM {schema}.runs AS one
        WHERE one.number > 0 AND one.journal > of_children.journal
        ORDER BY one.journal
        LIMIT 1
    ) AS next
),
of_mail (journal) AS (
    (SELECT one.journal FROM {schema}.inbox AS one WHERE one.journal > $1 ORDER BY one.journal LIMIT 1)
    UNION ALL
    SELECT next.journal
    FROM of_mail
    CROSS JOIN LATERAL (
        SELECT one.journal
        FROM {schema}.inbox AS one
        WHERE one.journal > of_mail.journal
        ORDER BY one.journal
        LIMIT 1
    ) AS next
),
of_keys (journal) AS (
    (SELECT one.journal FROM {schema}.inbox_keys AS one WHERE one.journal > $1 ORDER BY one.journal LIMIT 1)
    UNION ALL
    SELECT next.journal
    FROM of_keys
    CROSS JOIN LATERAL (
        SELECT one.journal
        FROM {schema}.inbox_keys AS one
        WHERE one.journal > of_keys.journal
        ORDER BY one.journal
        LIMIT 1
    ) AS next
),
of_items (journal) AS (
    (SELECT one.journal FROM {schema}.items AS one WHERE one.journal > $1 ORDER BY one.journal LIMIT 1)
    UNION ALL
    SELECT next.journal
    FROM of_items
    CROSS JOIN LATERAL (
        SELECT one.journal
        FROM {schema}.items AS one
        WHERE one.journal > of_items.journal
        ORDER BY one.journal
        LIMIT 1
    ) AS next
)
SELECT found.journal
FROM (
    (SELECT run.key AS journal FROM {schema}.runs AS run WHERE run.key > $1 AND run.number <= 0 ORDER BY run.key LIMIT $2)
    UNION
    (SELECT journal FROM of_events LIMIT $2)
    UNION
    (SELECT journal FROM of_children LIMIT $2)
    UNION
    (SELECT journal FROM of_mail LIMIT $2)
    UNION
    (SELECT journal FROM of_keys LIMIT $2)
    UNION
    (SELECT journal FROM of_items LIMIT $2)
) AS found
ORDER BY found.journal
LIMIT $2
