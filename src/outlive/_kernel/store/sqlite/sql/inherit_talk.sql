-- Signals and asks that wait for the root of the ended tree ?1 wait for the run ?2 that lives on under its id.
UPDATE outlive_inbox
SET journal = ?2
WHERE
    journal = ?1 AND run = 0 AND kind IN ('signal', 'ask')
    AND (
        SELECT root.status IN ('succeeded', 'failed', 'cancelled', 'timed_out', 'continued')
        FROM outlive_runs AS root
        WHERE root.key = ?1
    )
