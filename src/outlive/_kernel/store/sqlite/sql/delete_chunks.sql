DELETE FROM outlive_stream_chunks
WHERE
    stream IN (
        SELECT stream.key FROM outlive_streams AS stream WHERE stream.journal IN (SELECT value FROM json_each(?1))
    )
