-- Which definitions the runs of the owners in ?1 have that have a wake-up and no queue. Steps from one to the next through the index.
WITH RECURSIVE present (owner, definition) AS (
    SELECT owner.value, (
        SELECT run.definition
        FROM outlive_runs AS run
        WHERE run.owner = owner.value AND run.wake_at IS NOT NULL AND run.number = 0 AND run.queue IS NULL
        ORDER BY run.definition
        LIMIT 1
    )
    FROM json_each(?1) AS owner
    UNION ALL
    SELECT present.owner, (
        SELECT run.definition
        FROM outlive_runs AS run
        WHERE
            run.owner = present.owner AND run.definition > present.definition
            AND run.wake_at IS NOT NULL AND run.number = 0 AND run.queue IS NULL
        ORDER BY run.definition
        LIMIT 1
    )
    FROM present
    WHERE present.definition IS NOT NULL
)
SELECT json_group_array(definition) FROM present WHERE definition IS NOT NULL
