-- Renew a lease, of a session that has not ended and knows of the renewal before, until $4.
UPDATE {schema}.workers
SET expires_at = {instant}($1) + $3::bigint
WHERE id = $2 AND NOT is_retired AND expires_at >= $4
RETURNING expires_at
