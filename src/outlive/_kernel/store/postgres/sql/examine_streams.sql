-- The streams of these trees, and what their chunks have: their items, and how many do not begin where the one before
-- ends.
SELECT
    stream.journal,
    stream.run,
    stream.name,
    stream.position,
    stream.number,
    coalesce(sum(chunk.count), 0)::bigint,
    count(*) FILTER (WHERE chunk.first <> 1 + coalesce(chunk.before, 0))
FROM {schema}.streams AS stream
LEFT JOIN LATERAL (
    SELECT found.first, found.count, lag(found.first + found.count - 1) OVER (ORDER BY found.first) AS before
    FROM {schema}.stream_chunks AS found
    WHERE found.stream = stream.key
) AS chunk ON true
WHERE stream.journal = ANY ($1::bigint[])
GROUP BY stream.key
ORDER BY stream.journal, stream.run, stream.name
