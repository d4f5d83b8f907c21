-- Delete the rows of all tables of a store's schema, and the user's own tables.
DO $$ BEGIN
    EXECUTE (
        SELECT coalesce(
            string_agg(
                CASE relnamespace
                    WHEN to_regnamespace(quote_ident(current_setting('proof.emptied'))) THEN format('DELETE FROM %s', oid::regclass)
                    ELSE format('DROP TABLE %s CASCADE', oid::regclass)
                END, ';'
            ), 'SELECT 1'
        )
        FROM pg_class
        WHERE
            relnamespace IN (to_regnamespace(quote_ident(current_setting('proof.emptied'))), to_regnamespace('public'))
            AND relkind = 'r' AND relname <> 'migrations'
    );
END $$
