-- Make a tree that has not ended due at ?2, if it is not before.
UPDATE outlive_runs
SET wake_at = ?2
WHERE key = ?1 AND status IN ('pending', 'running', 'waiting') AND (wake_at IS NULL OR wake_at > ?2)
