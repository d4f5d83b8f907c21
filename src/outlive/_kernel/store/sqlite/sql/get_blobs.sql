SELECT id, data FROM outlive_blobs WHERE id IN (SELECT value FROM json_each(?1))
