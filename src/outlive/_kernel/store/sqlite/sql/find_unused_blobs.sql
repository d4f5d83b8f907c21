-- Blobs that were last put or in use before ?1.
SELECT id FROM outlive_blob_uses WHERE kept_at < ?1 LIMIT ?2
