-- Entries of the index of waits that no run has (1), and waits of runs that it does not have (0); at most ?1.
WITH own (name, created_at, run_key) AS (
    SELECT json_extract(run.waits, named.fullkey || '.name'), run.created_at, run.key
    FROM outlive_runs AS run, json_each(iif(json_valid(run.waits), run.waits, '[]')) AS named
    WHERE
        run.waits IS NOT NULL
        AND json_extract(run.waits, named.fullkey || '.kind') IN ('signal', 'approval', 'child', 'ask')
        AND json_extract(run.waits, named.fullkey || '.name') IS NOT NULL
    UNION
    SELECT '@approval', run.created_at, run.key
    FROM outlive_runs AS run
    WHERE run.approvals IS NOT NULL
    UNION
    SELECT '@assignee/' || node.value, run.created_at, run.key
    FROM outlive_runs AS run, json_tree(iif(json_valid(run.approvals), run.approvals, '[]')) AS node
    WHERE run.approvals IS NOT NULL AND node.path LIKE '%.assignees' AND node.type = 'text'
)
SELECT run_key, CAST(name AS BLOB), 1
FROM (SELECT name, created_at, run_key FROM outlive_waits EXCEPT SELECT name, created_at, run_key FROM own)
UNION ALL
SELECT run_key, CAST(name AS BLOB), 0
FROM (SELECT name, created_at, run_key FROM own EXCEPT SELECT name, created_at, run_key FROM outlive_waits)
LIMIT ?1
