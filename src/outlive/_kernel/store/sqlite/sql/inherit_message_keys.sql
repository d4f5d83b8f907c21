-- Keys of messages to the ended tree ?1 are known to its successor ?2 from now on.
UPDATE outlive_inbox_keys
SET journal = ?2
WHERE
    journal = ?1
    AND (
        SELECT root.status IN ('succeeded', 'failed', 'cancelled', 'timed_out', 'continued')
        FROM outlive_runs AS root
        WHERE root.key = ?1
    )
