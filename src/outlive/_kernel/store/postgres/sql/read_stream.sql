SELECT chunk.first, chunk.count, chunk.body
FROM {schema}.runs AS run
JOIN {schema}.streams AS stream ON stream.journal = run.journal AND stream.run = run.number AND stream.name = $2
JOIN {schema}.stream_chunks AS chunk ON chunk.stream = stream.key
WHERE
    run.id = $1
    AND stream.position > $3
    AND chunk.first >= coalesce((
        SELECT max(earlier.first)
        FROM {schema}.stream_chunks AS earlier
        WHERE earlier.stream = stream.key AND earlier.first <= $3 + 1
    ), 0)
ORDER BY chunk.first
LIMIT $4
