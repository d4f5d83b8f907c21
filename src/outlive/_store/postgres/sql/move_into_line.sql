-- Those of these runs get in line that have no slot, no owner, and are due at $2; those that others have locked come later.
UPDATE {schema}.runs AS run
SET slot = 1
WHERE run.key IN (
    SELECT root.key
    FROM {schema}.runs AS root
    WHERE root.key = ANY ($1::bigint[]) AND root.slot + 0 = 0 AND root.owner || '' = '' AND root.wake_at + 0 <= $2
    FOR NO KEY UPDATE SKIP LOCKED
)
RETURNING run.queue, run.queue_key, run.definition
