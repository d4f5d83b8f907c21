-- End a session, its lease with it, and tell the others: what it owns is theirs to take.
WITH retired AS (
    UPDATE {schema}.workers
    SET is_retired = true, expires_at = least(expires_at, {instant}($3))
    WHERE id = $1 AND NOT is_retired
    RETURNING id
)
SELECT CASE WHEN $2::text IS NOT NULL THEN pg_notify($2::text, '') END FROM retired
