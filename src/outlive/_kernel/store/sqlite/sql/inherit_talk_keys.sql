-- Keys of signals to the ended tree ?1, and of asks that have an answer or wait, are known to the run ?2 that lives on
-- under its id; the messages that wait were moved before. Keys of all other messages begin with '@' too.
UPDATE outlive_inbox_keys
SET journal = ?2
WHERE
    journal = ?1
    AND (
        key NOT LIKE '@%'
        OR (
            key LIKE '@ask/%'
            AND (
                answer IS NOT NULL
                OR EXISTS (
                    SELECT 1
                    FROM outlive_inbox AS message
                    WHERE message.journal = ?2 AND message.key = outlive_inbox_keys.key
                )
            )
        )
    )
    AND (
        SELECT root.status IN ('succeeded', 'failed', 'cancelled', 'timed_out', 'continued')
        FROM outlive_runs AS root
        WHERE root.key = ?1
    )
