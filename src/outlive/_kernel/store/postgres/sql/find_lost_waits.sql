-- Entries of the index of waits that no run has, and waits of runs that it does not have; at most $1.
WITH own (name, created_at, run_key) AS (
    SELECT names.name, run.created_at, run.key
    FROM {schema}.runs AS run CROSS JOIN {schema}.wait_names(run.waits) AS names (name)
    WHERE run.waits IS NOT NULL
    UNION
    SELECT names.name, run.created_at, run.key
    FROM {schema}.runs AS run CROSS JOIN {schema}.asked_names(run.approvals) AS names (name)
    WHERE run.approvals IS NOT NULL
)
SELECT run_key, name, true AS is_stray
FROM (SELECT name, created_at, run_key FROM {schema}.waits EXCEPT SELECT name, created_at, run_key FROM own) AS stray
UNION ALL
SELECT run_key, name, false
FROM (SELECT name, created_at, run_key FROM own EXCEPT SELECT name, created_at, run_key FROM {schema}.waits) AS lost
LIMIT $1
