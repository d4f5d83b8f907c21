INSERT INTO outlive_runs (
    key, id, journal, number, root_id, parent_id, workflow, version, nonce, created_at, tags,
    status, waits, wake_at, owner, epoch, attempts, updated_at, finished_at, timeout_at, reason, result, failure, published
)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24
)
ON CONFLICT (key) DO UPDATE SET
    id = excluded.id,
    journal = excluded.journal,
    number = excluded.number,
    root_id = excluded.root_id,
    parent_id = excluded.parent_id,
    workflow = excluded.workflow,
    version = excluded.version,
    nonce = excluded.nonce,
    created_at = excluded.created_at,
    tags = excluded.tags,
    status = excluded.status,
    waits = excluded.waits,
    wake_at = excluded.wake_at,
    owner = excluded.owner,
    epoch = excluded.epoch,
    attempts = excluded.attempts,
    updated_at = excluded.updated_at,
    finished_at = excluded.finished_at,
    timeout_at = excluded.timeout_at,
    reason = excluded.reason,
    result = excluded.result,
    failure = excluded.failure,
    published = excluded.published
