-- The answer to the message with the key ?2 to the run ?1; a row without one if there is none so far.
SELECT seen.answer
FROM outlive_runs AS run
CROSS JOIN outlive_inbox_keys AS seen ON seen.journal = run.journal AND seen.key = ?2
WHERE run.id = ?1
