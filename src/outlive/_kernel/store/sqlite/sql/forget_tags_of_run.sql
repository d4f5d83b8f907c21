-- Tags of run ?2 in the tree ?1, as its row has them.
DELETE FROM outlive_tags
WHERE
    (name, value, created_at, run_key) IN (
        SELECT tag.key, tag.value, run.created_at, run.key
        FROM outlive_runs AS run, json_each(iif(json_valid(run.tags), run.tags, '{}')) AS tag
        WHERE
            ((run.key = ?1 AND run.number = 0 AND ?2 = 0) OR (run.journal = ?1 AND run.number = ?2 AND run.number > 0))
            AND run.tags IS NOT NULL
    )
