DELETE FROM outlive_blob_uses WHERE id IN (SELECT value FROM json_each(?1))
