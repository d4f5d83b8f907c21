-- Root runs that exist; rows of NULLs are padding.
--
-- Only what a fold can change is set, because each index with a column in SET is written.
UPDATE outlive_runs
SET
    status = new.column2,
    waits = new.column3,
    wake_at = new.column4,
    owner = new.column5,
    epoch = new.column6,
    attempts = new.column7,
    updated_at = new.column8,
    finished_at = new.column9,
    timeout_at = new.column10,
    reason = new.column11,
    result = new.column12,
    failure = new.column13,
    published = new.column14
FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) AS new
WHERE outlive_runs.key = new.column1
