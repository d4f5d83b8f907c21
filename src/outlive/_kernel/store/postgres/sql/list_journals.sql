-- Handles after $1, at most $2, each list in the order of an index.
SELECT found.journal
FROM (
    (SELECT run.key AS journal FROM {schema}.runs AS run WHERE run.key > $1 AND run.number <= 0 ORDER BY run.key LIMIT $2)
    UNION
    (SELECT DISTINCT journal FROM {schema}.events WHERE journal > $1 ORDER BY journal LIMIT $2)
    UNION
    (SELECT DISTINCT journal FROM {schema}.runs WHERE journal > $1 AND number > 0 ORDER BY journal LIMIT $2)
    UNION
    (SELECT DISTINCT journal FROM {schema}.inbox WHERE journal > $1 ORDER BY journal LIMIT $2)
    UNION
    (SELECT DISTINCT journal FROM {schema}.inbox_keys WHERE journal > $1 ORDER BY journal LIMIT $2)
    UNION
    (SELECT DISTINCT journal FROM {schema}.items WHERE journal > $1 ORDER BY journal LIMIT $2)
    UNION
    (SELECT DISTINCT journal FROM {schema}.streams WHERE journal > $1 ORDER BY journal LIMIT $2)
) AS found
ORDER BY found.journal
LIMIT $2
