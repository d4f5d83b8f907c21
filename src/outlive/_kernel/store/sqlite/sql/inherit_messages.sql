-- Messages that wait for the root of the ended tree ?1 wait for that of its successor ?2 from now on, in their old order.
UPDATE outlive_inbox
SET journal = ?2
WHERE
    journal = ?1 AND run = 0
    AND (
        SELECT root.status IN ('succeeded', 'failed', 'cancelled', 'timed_out', 'continued')
        FROM outlive_runs AS root
        WHERE root.key = ?1
    )
