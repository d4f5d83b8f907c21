-- Whether a session has ended, and until when it has its lease.
SELECT is_retired, expires_at FROM {schema}.workers WHERE id = $1
