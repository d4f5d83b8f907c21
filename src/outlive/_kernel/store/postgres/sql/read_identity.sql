-- What lies in schema $1: whether it exists, how many tables are in it, and whether it is ours.
SELECT
    space.oid IS NOT NULL AS exists,
    (
        SELECT count(*) FROM pg_class AS thing
        WHERE thing.relnamespace = space.oid AND thing.relkind IN ('r', 'p', 'v', 'm', 'f')
    ) AS tables,
    (
        SELECT count(*) = 3
        FROM pg_class AS thing
        JOIN pg_attribute AS part ON part.attrelid = thing.oid AND part.attname IN ('version', 'name', 'applied_at')
        WHERE thing.relnamespace = space.oid AND thing.relname = 'migrations'
    ) AS is_ours
FROM (SELECT) AS one
LEFT JOIN pg_namespace AS space ON space.nspname = $1
