-- The names of all queues that runs have, or that have a cell. Steps from one to the next through the index.
WITH RECURSIVE queues (name) AS (
    SELECT min(queue) FROM outlive_runs WHERE queue IS NOT NULL
    UNION ALL
    SELECT (SELECT min(queue) FROM outlive_runs WHERE queue > queues.name AND queue IS NOT NULL)
    FROM queues
    WHERE queues.name IS NOT NULL
)
SELECT json_group_array(name)
FROM (
    SELECT name FROM queues WHERE name IS NOT NULL
    UNION
    SELECT substr(name, length(?1) + 1) FROM outlive_cells WHERE name > ?1 AND name < ?2
)
