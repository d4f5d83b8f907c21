-- Delete the tags of all runs of the trees ?1, as the rows of the runs have them.
DELETE FROM outlive_tags
WHERE
    (name, value, created_at, run_key) IN (
        SELECT tag.key, tag.value, run.created_at, run.key
        FROM outlive_runs AS run, json_each(iif(json_valid(run.tags), run.tags, '{}')) AS tag
        WHERE
            run.tags IS NOT NULL
            AND (
                run.key IN (SELECT value FROM json_each(?1))
                OR (run.journal IN (SELECT value FROM json_each(?1)) AND run.number > 0)
            )
    )
