-- Delete the rows of all tables of a schema of Outlive, but not which migrations it has.
DO $$ BEGIN
    EXECUTE (
        SELECT coalesce(string_agg(format('DELETE FROM %s', oid::regclass), ';'), 'SELECT 1')
        FROM pg_class
        WHERE relnamespace = to_regnamespace(quote_ident('{schema}')) AND relkind = 'r' AND relname <> 'migrations'
    );
END $$
