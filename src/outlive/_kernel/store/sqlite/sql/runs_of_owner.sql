-- The runs that one worker owns. Only roots have an owner, and as long as they have one they are due.
(
    SELECT key
    FROM outlive_runs INDEXED BY outlive_runs_owner_definition_wake_at
    WHERE owner = :owner AND wake_at IS NOT NULL AND number = 0 AND queue IS NULL
    UNION ALL
    SELECT key
    FROM outlive_runs INDEXED BY outlive_runs_owner_queue_definition_wake_at
    WHERE owner = :owner AND queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL
) AS owned
CROSS JOIN outlive_runs AS run ON run.key = owned.key
WHERE run.owner = :owner
