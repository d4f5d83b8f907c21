INSERT INTO outlive_stream_chunks (stream, first, count, body) VALUES (?1, ?2, ?3, ?4)
