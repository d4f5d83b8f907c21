-- How many runs are before the run with id ?1 in its line, of all definitions, up to ?2.
SELECT count(*)
FROM (
    SELECT 1
    FROM outlive_runs AS asked
    CROSS JOIN outlive_lines AS line ON line.queue = asked.queue AND line.queue_key = asked.queue_key
    CROSS JOIN outlive_runs AS run
        ON run.queue = line.queue AND run.queue_key = line.queue_key AND run.definition = line.definition
        AND run.slot = 1 AND run.wake_at - run.lead <= asked.wake_at - asked.lead
    WHERE asked.id = ?1 AND asked.slot = 1 AND (run.wake_at - run.lead, run.key) < (asked.wake_at - asked.lead, asked.key)
    LIMIT ?2
)
