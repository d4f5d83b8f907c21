-- What a GRANT has to name so that this user may work with schema $1, whose tables of ours are $2; no row if it may. Rows of the
-- audit log are only added by what has to go on: an admin may keep the rights to change and to delete them.
SELECT needed.right_on
FROM pg_namespace AS space
CROSS JOIN LATERAL (
    VALUES
    ('USAGE ON SCHEMA', has_schema_privilege(space.oid, 'USAGE')),
    (
        'SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA',
        NOT EXISTS (
            SELECT FROM pg_class AS thing
            WHERE
                thing.relnamespace = space.oid AND thing.relname = ANY($2::text[])
                AND NOT (
                    has_table_privilege(thing.oid, 'SELECT')
                    AND (thing.relname = 'migrations' OR has_table_privilege(thing.oid, 'INSERT'))
                    AND (thing.relname IN ('migrations', 'audit') OR has_table_privilege(thing.oid, 'UPDATE'))
                    AND (thing.relname IN ('migrations', 'audit') OR has_table_privilege(thing.oid, 'DELETE'))
                )
        )
    ),
    (
        'USAGE ON ALL SEQUENCES IN SCHEMA',
        NOT EXISTS (
            SELECT FROM pg_class AS thing
            WHERE
                thing.relnamespace = space.oid AND thing.relname = 'runs_key_seq'
                AND NOT has_sequence_privilege(thing.oid, 'USAGE')
        )
    ),
    (
        'EXECUTE ON ALL FUNCTIONS IN SCHEMA',
        NOT EXISTS (
            SELECT FROM pg_proc AS function
            WHERE
                function.pronamespace = space.oid AND function.proname LIKE '%\_{functions_version}'
                AND NOT has_function_privilege(function.oid, 'EXECUTE')
        )
    )
) AS needed (right_on, is_there)
WHERE space.nspname = $1 AND NOT needed.is_there
