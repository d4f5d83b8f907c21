-- Equal content is stored once.
INSERT OR IGNORE INTO outlive_blobs (id, data) VALUES (?1, ?2)
