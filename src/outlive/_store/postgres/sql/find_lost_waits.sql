-- Entries of the index of waits that no run has, and waits of runs that it does not have; at most $1.
SELECT waiting.run_key, waiting.name, true AS is_stray
FROM {schema}.waits AS waiting
LEFT JOIN {schema}.runs AS run ON run.key = waiting.run_key AND run.created_at = waiting.created_at
WHERE run.waits IS NULL OR NOT waiting.name = ANY (ARRAY(SELECT {schema}.wait_names(run.waits)))
UNION ALL
SELECT run.key, own.name, false
FROM {schema}.runs AS run CROSS JOIN {schema}.wait_names(run.waits) AS own (name)
WHERE
    run.waits IS NOT NULL
    AND NOT EXISTS (
        SELECT FROM {schema}.waits AS waiting
        WHERE
            md5(waiting.name) = md5(own.name) AND waiting.created_at = run.created_at AND waiting.run_key = run.key
    )
LIMIT $1
