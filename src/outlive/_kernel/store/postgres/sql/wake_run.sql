-- Make a tree that has not ended due, if it is not already.
UPDATE {schema}.runs AS root
SET wake_at = {instant}($2)
WHERE
    root.key = $1
    AND root.status IN ('pending', 'running', 'waiting')
    AND (root.wake_at IS NULL OR root.wake_at > {instant}($2))
