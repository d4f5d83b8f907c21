UPDATE {schema}.workers
SET expires_at = {instant}($1) + $3::bigint
WHERE id = $2 AND NOT is_retired
RETURNING id
