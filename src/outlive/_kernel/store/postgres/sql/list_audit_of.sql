-- The same for one target, which the index finds.
SELECT entry.number, entry.at, entry.body, entry.hash
FROM {schema}.audit AS entry
WHERE
    md5(entry.target) = md5($7::text) AND entry.target = $7
    AND entry.number < coalesce($1::bigint, 9223372036854775807)
    AND ($3::text IS NULL OR entry.actor = $3)
    AND ($4::text IS NULL OR entry.verb = $4)
    AND ($5::bigint IS NULL OR entry.at >= $5)
    AND ($6::bigint IS NULL OR entry.at < $6)
ORDER BY entry.number DESC
LIMIT $2::integer
