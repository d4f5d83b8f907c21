-- The oldest rows, up to the first that is not older than $1, at most $2, and never the last one of the log.
WITH first AS (
    SELECT entry.number, entry.at
    FROM {schema}.audit AS entry
    ORDER BY entry.number
    LIMIT $2::integer
),
gone AS (
    DELETE FROM {schema}.audit AS entry
    USING first
    WHERE
        entry.number = first.number
        AND first.number < (SELECT max(other.number) FROM {schema}.audit AS other)
        AND NOT EXISTS (SELECT FROM first AS young WHERE young.at >= $1::bigint AND young.number <= first.number)
    RETURNING entry.number, entry.at, entry.body, entry.hash
)
SELECT gone.number, gone.at, gone.body, gone.hash FROM gone ORDER BY gone.number
