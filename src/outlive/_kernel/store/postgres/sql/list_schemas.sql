-- The schemas that hold a store, as far as this user may see them.
SELECT schema.nspname AS name
FROM pg_namespace AS schema
WHERE EXISTS (SELECT FROM pg_class AS relation WHERE relation.relnamespace = schema.oid AND relation.relname = 'migrations')
ORDER BY schema.nspname
