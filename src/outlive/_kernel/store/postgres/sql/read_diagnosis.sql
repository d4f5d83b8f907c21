-- What a doctor asks about a server and schema $1.
SELECT
    current_setting('server_version') AS version_name,
    current_setting('autovacuum') AS autovacuum,
    current_setting('track_counts') AS track_counts,
    current_setting('max_connections')::integer AS connections_max,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
    pg_database_size(current_database()) AS bytes,
    (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()) AS frozen_age,
    (
        SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)
        FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
    )::double precision AS oldest_seconds,
    current_schema() = $1 AS is_first, -- Where this role finds a table that it names without a schema.
    has_database_privilege(current_database(), 'CREATE') AS may_create,
    (SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = $1) AS is_owner
