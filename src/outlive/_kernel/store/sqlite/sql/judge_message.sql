-- What speaks for and against a message: the run it is for, the state of its tree, its key.
SELECT
    run.journal,
    run.number,
    run.status,
    root.status,
    root.workflow,
    root.tags,
    EXISTS (SELECT 1 FROM outlive_inbox_keys AS seen WHERE seen.journal = run.journal AND seen.key = ?2)
FROM outlive_runs AS run
JOIN outlive_runs AS root ON root.key = run.journal
WHERE run.id = ?1
