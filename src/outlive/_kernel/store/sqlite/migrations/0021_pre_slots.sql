-- How many slots of its queue a run takes.
ALTER TABLE outlive_runs ADD COLUMN slots INTEGER NOT NULL DEFAULT 1;

-- A claim adds up the slots that are held: it finds all it needs here.
DROP INDEX outlive_runs_slots;

CREATE INDEX outlive_runs_slots ON outlive_runs (queue, queue_key, slots) WHERE slot = 2;
