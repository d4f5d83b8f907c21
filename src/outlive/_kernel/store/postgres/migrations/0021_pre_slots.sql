-- How many slots of its queue a run takes.
ALTER TABLE runs
ADD COLUMN slots integer NOT NULL DEFAULT 1;
