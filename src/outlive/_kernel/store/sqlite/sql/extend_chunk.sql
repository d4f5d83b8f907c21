-- CAST: what `||` makes of two blobs is text for SQLite.
UPDATE outlive_stream_chunks SET count = count + ?3, body = CAST(body || ?4 AS BLOB) WHERE stream = ?1 AND first = ?2
