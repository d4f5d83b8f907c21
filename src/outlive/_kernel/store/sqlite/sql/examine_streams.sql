-- The streams of the trees in ?1, and what their chunks have: how many, their items, and how many begin where the one
-- before ends.
SELECT
    stream.journal,
    stream.run,
    CAST(stream.name AS BLOB),
    stream.position,
    stream.number,
    (SELECT coalesce(sum(chunk.count), 0) FROM outlive_stream_chunks AS chunk WHERE chunk.stream = stream.key),
    (
        SELECT count(*)
        FROM outlive_stream_chunks AS chunk
        WHERE
            chunk.stream = stream.key
            AND chunk.first <> 1 + coalesce((
                SELECT earlier.first + earlier.count - 1
                FROM outlive_stream_chunks AS earlier
                WHERE earlier.stream = chunk.stream AND earlier.first < chunk.first
                ORDER BY earlier.first DESC
                LIMIT 1
            ), 0)
    )
FROM outlive_streams AS stream
WHERE stream.journal IN (SELECT value FROM json_each(?1))
ORDER BY stream.journal, stream.run, stream.name
