-- These blobs (?1, a JSON array) are in use at ?2; nothing is written of those of which that was said less than ?3
-- microseconds before.
UPDATE outlive_blob_uses SET kept_at = ?2
WHERE id IN (SELECT value FROM json_each(?1)) AND kept_at < ?2 - ?3
