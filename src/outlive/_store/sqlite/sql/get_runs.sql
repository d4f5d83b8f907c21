-- Runs by key (?1) or by id (?2), both JSON arrays.
SELECT json_group_array(json_array(
    key, id, journal, number, root_id, parent_id, workflow, version, nonce, created_at, tags,
    status, waits, wake_at, owner, epoch, attempts, updated_at, finished_at, timeout_at, reason, result, failure, published
))
FROM outlive_runs
WHERE key IN (SELECT value FROM json_each(?1)) OR id IN (SELECT value FROM json_each(?2))
