-- The rows of the trees in ?1, as bytes: a text that is damaged is not text any more.
SELECT CAST(json_array(
    key, id, journal, number, root_id, parent_id, workflow, version, nonce, created_at, tags,
    status, waits, wake_at, owner, epoch, attempts, updated_at, finished_at, timeout_at, reason, result, failure, published
) AS BLOB)
FROM (
    SELECT * FROM outlive_runs WHERE key IN (SELECT value FROM json_each(?1)) AND number <= 0
    UNION ALL
    SELECT * FROM outlive_runs WHERE journal IN (SELECT value FROM json_each(?1)) AND number > 0
)
ORDER BY number, key
