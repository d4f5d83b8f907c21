-- How long a run may take from the next claim on, and when a worker must have begun it. NULL in rows that exist.
ALTER TABLE outlive_runs ADD COLUMN timeout INTEGER;

ALTER TABLE outlive_runs ADD COLUMN begin_by INTEGER;

-- Runs that must be begun in time: only these pay for it.
CREATE INDEX outlive_runs_begin_by ON outlive_runs (begin_by) WHERE begin_by IS NOT NULL AND finished_at IS NULL;
