-- Blobs that were last put or in use before $1. Looked at once more under its lock: another caller may have put it
-- meanwhile.
DELETE FROM {schema}.blobs
WHERE id = ANY (ARRAY(SELECT id FROM {schema}.blobs WHERE kept_at < $1 LIMIT $2)) AND kept_at < $1
RETURNING id
