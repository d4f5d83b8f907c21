-- Entries of the index of waits that no run has (1), and waits of runs that it does not have (0); at most ?1.
SELECT waiting.run_key, CAST(waiting.name AS BLOB), 1
FROM outlive_waits AS waiting
WHERE NOT EXISTS (
    SELECT 1
    FROM outlive_runs AS run, json_each(CASE WHEN json_valid(run.waits) THEN run.waits END) AS own
    WHERE
        run.key = waiting.run_key AND json_extract(run.waits, own.fullkey || '.name') = waiting.name
        AND run.created_at = waiting.created_at
)
UNION ALL
SELECT run.key, CAST(json_extract(run.waits, own.fullkey || '.name') AS BLOB), 0
FROM outlive_runs AS run, json_each(CASE WHEN json_valid(run.waits) THEN run.waits END) AS own
WHERE
    run.waits IS NOT NULL AND json_extract(run.waits, own.fullkey || '.kind') IN ('signal', 'approval', 'child')
    AND json_extract(run.waits, own.fullkey || '.name') IS NOT NULL
    AND NOT EXISTS (
        SELECT 1
        FROM outlive_waits AS waiting
        WHERE
            waiting.name = json_extract(run.waits, own.fullkey || '.name')
            AND waiting.created_at = run.created_at AND waiting.run_key = run.key
    )
LIMIT ?1
