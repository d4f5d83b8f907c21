-- Which server this is, and in which of its lives: a server that takes over from its primary begins a new timeline.
SELECT
    (SELECT system_identifier FROM pg_control_system())::text AS system,
    ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::integer AS timeline
