-- What a repaired tree has to read makes it due; with $3, so does the repair itself.
WITH woken AS (
    UPDATE {schema}.runs AS root
    SET wake_at = {schema}.instant($2)
    WHERE
        $3::boolean
        AND root.key = $1
        AND root.status IN ('pending', 'running', 'waiting')
        AND (root.wake_at IS NULL OR root.wake_at > {schema}.instant($2))
)
SELECT {schema}.wake_for_mail({schema}.instant($2), ARRAY[$1::bigint])
