-- How long a run may take from the next claim on, and when a worker must have begun it. NULL in rows that exist.
ALTER TABLE runs
ADD COLUMN timeout bigint,
ADD COLUMN begin_by bigint;

-- Runs that must be begun in time: only these pay for it.
CREATE INDEX runs_begin_by ON runs (begin_by) WHERE begin_by IS NOT NULL AND finished_at IS NULL;
