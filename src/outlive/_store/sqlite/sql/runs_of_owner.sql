-- The runs that one worker owns. Only roots have an owner, and as long as they have one they are due.
outlive_runs AS run INDEXED BY outlive_runs_owner_definition_wake_at
WHERE run.owner = :owner AND run.wake_at IS NOT NULL AND run.number = 0
