-- Root runs of new trees; rows of NULLs are padding.
INSERT INTO outlive_runs (
    key, id, journal, number, root_id, parent_id, workflow, version, nonce, created_at, tags,
    status, waits, wake_at, owner, epoch, attempts, updated_at, finished_at, timeout_at, reason, result, failure, published
)
SELECT
    new.column1, new.column2, new.column3, new.column4, new.column5, new.column6, new.column7, new.column8,
    new.column9, new.column10, new.column11, new.column12, new.column13, new.column14, new.column15, new.column16,
    new.column17, new.column18, new.column19, new.column20, new.column21, new.column22, new.column23, new.column24
FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) AS new
WHERE new.column1 IS NOT NULL
