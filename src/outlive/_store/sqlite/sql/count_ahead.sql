-- How many runs are before the run with id ?1 in its line, of all definitions, up to ?2.
SELECT count(*)
FROM (
    SELECT 1
    FROM outlive_runs AS own
    CROSS JOIN outlive_lines AS line ON line.queue = own.queue AND line.queue_key = own.queue_key
    CROSS JOIN outlive_runs AS run
        ON run.queue = line.queue AND run.queue_key = line.queue_key AND run.definition = line.definition
        AND run.slot = 1 AND run.wake_at - run.lead <= own.wake_at - own.lead
    WHERE own.id = ?1 AND own.slot = 1 AND (run.wake_at - run.lead, run.key) < (own.wake_at - own.lead, own.key)
    LIMIT ?2
)
