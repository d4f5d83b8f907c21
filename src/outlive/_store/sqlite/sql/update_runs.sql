-- Root runs that exist; rows of NULLs are padding.
--
-- Only what a fold can change is set, because each index with a column in SET is written. A row that is to get
-- another id is left alone, which the caller sees in the number of changed rows (see rename_run.sql).
UPDATE outlive_runs
SET
    status = new.column3,
    waits = new.column4,
    wake_at = new.column5,
    owner = new.column6,
    epoch = new.column7,
    attempts = new.column8,
    updated_at = new.column9,
    finished_at = new.column10,
    timeout_at = new.column11,
    reason = new.column12,
    result = new.column13,
    failure = new.column14
FROM (VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)) AS new
WHERE outlive_runs.key = new.column1 AND outlive_runs.id = new.column2
