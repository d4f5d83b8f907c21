-- Tags of child runs that a snapshot stands for.
DELETE FROM outlive_tags
WHERE
    (name, value, created_at, run_key) IN (
        SELECT tag.key, tag.value, child.created_at, child.key
        FROM outlive_runs AS child, json_each(child.tags) AS tag
        WHERE child.journal = ?1 AND child.number > 0 AND child.number < ?2 AND child.tags IS NOT NULL
    )
