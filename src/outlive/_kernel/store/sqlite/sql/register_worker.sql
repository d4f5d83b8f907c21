INSERT INTO outlive_workers (id, name, definitions, started_at, expires_at, is_retired, lock_file, process, lease)
VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8)
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name,
    definitions = excluded.definitions,
    started_at = excluded.started_at,
    expires_at = excluded.expires_at,
    is_retired = 0,
    lock_file = excluded.lock_file,
    process = excluded.process,
    lease = excluded.lease
