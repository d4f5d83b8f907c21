-- The names of all queues that runs have, or that have a cell ($1 to $2). Steps from one to the next through the index.
WITH RECURSIVE queues (name) AS (
    SELECT min(queue) FROM {schema}.runs WHERE queue IS NOT NULL
    UNION ALL
    SELECT (SELECT min(queue) FROM {schema}.runs WHERE queue > queues.name AND queue IS NOT NULL)
    FROM queues
    WHERE queues.name IS NOT NULL
)
SELECT name FROM queues WHERE name IS NOT NULL
UNION
SELECT substr(cell.name, length($1::text) + 1) FROM {schema}.cells AS cell WHERE cell.name > $1::text AND cell.name < $2::text
