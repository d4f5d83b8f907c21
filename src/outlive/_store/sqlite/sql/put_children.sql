-- Child runs, new ones and others; rows of NULLs are padding. The first column is unused: a child's key is its own.
INSERT INTO outlive_runs (
    id, journal, number, root_id, parent_id, workflow, version, nonce, created_at, tags,
    status, waits, wake_at, owner, epoch, attempts, updated_at, finished_at, timeout_at, reason, result, failure, published
)
SELECT
    new.column2, new.column3, new.column4, new.column5, new.column6, new.column7, new.column8,
    new.column9, new.column10, new.column11, new.column12, new.column13, new.column14, new.column15, new.column16,
    new.column17, new.column18, new.column19, new.column20, new.column21, new.column22, new.column23, new.column24
FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) AS new
WHERE new.column3 IS NOT NULL
ON CONFLICT (journal, number) WHERE number > 0 DO UPDATE SET
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
