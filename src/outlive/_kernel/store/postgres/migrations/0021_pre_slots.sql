-- How many slots of its queue a run takes.
ALTER TABLE runs
ADD COLUMN slots bigint NOT NULL DEFAULT 1;
