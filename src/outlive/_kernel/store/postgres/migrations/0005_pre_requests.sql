-- Runs that users have asked for in transactions of their own; the first who looks after the commit starts them.
CREATE TABLE requests (
    run_id text COLLATE "C" PRIMARY KEY,
    tree text NOT NULL -- The change that creates it, as JSON.
) WITH (autovacuum_vacuum_scale_factor = 0.02);

-- From here on functions have a version in their names, and are no part of a migration.
DROP FUNCTION IF EXISTS commit_changes, find_held, forget, instant, join_tree, put_children, put_messages, wake_for_mail;
