-- Of the runs $1, those without a slot and an owner that are due at $2 get in line. A run that another transaction has
-- locked is left to a later claim.
UPDATE {schema}.runs AS run
SET slot = 1
WHERE run.key IN (
    SELECT root.key
    FROM {schema}.runs AS root
    WHERE root.key = ANY ($1::bigint[]) AND root.slot + 0 = 0 AND root.owner || '' = '' AND root.wake_at + 0 <= $2
    FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING run.queue, run.queue_key, run.definition
