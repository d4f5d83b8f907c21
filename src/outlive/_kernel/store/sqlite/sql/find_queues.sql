-- The names of the queues in which something may be in line, or is to be done for an owner in ?1. Steps from one to the
-- next through two indexes.
WITH RECURSIVE lined (name) AS (
    SELECT min(queue) FROM outlive_lines
    UNION ALL
    SELECT (SELECT min(queue) FROM outlive_lines WHERE queue > lined.name) FROM lined WHERE lined.name IS NOT NULL
),
others (owner, name) AS (
    SELECT
        owner.value,
        (
            SELECT min(queue)
            FROM outlive_runs
            WHERE outlive_runs.owner = owner.value AND queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL
        )
    FROM json_each(?1) AS owner
    UNION ALL
    SELECT
        others.owner,
        (
            SELECT min(queue)
            FROM outlive_runs
            WHERE
                outlive_runs.owner = others.owner AND queue > others.name
                AND queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL
        )
    FROM others
    WHERE others.name IS NOT NULL
)
SELECT json_group_array(name)
FROM (SELECT name FROM lined WHERE name IS NOT NULL UNION SELECT name FROM others WHERE name IS NOT NULL)
