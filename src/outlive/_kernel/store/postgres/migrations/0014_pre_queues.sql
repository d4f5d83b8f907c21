-- The queue of a root run, its key there, by how much its priority brings it forward in the line, and where it is: 0 outside,
-- 1 in line, 2 it holds a slot. NULL for runs without a queue; rows that exist are not touched.
ALTER TABLE runs
ADD COLUMN queue text COLLATE "C",
ADD COLUMN queue_key text COLLATE "C",
ADD COLUMN lead bigint NOT NULL DEFAULT 0,
ADD COLUMN slot smallint NOT NULL DEFAULT 0;

-- Claiming, of runs without a queue: those in line must not stand in their way, however many there are.
DROP INDEX runs_owner_definition_wake_at;

CREATE INDEX runs_owner_definition_wake_at ON runs (owner, definition, wake_at)
WHERE wake_at IS NOT NULL AND number = 0 AND queue IS NULL;

-- The same of runs with a queue that are not in line: those that have a slot, and those that will get in line.
CREATE INDEX runs_owner_queue_definition_wake_at ON runs (owner, queue, definition, wake_at)
WHERE queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL;

CREATE INDEX runs_line ON runs (queue, queue_key, definition, (wake_at - lead), key) WHERE slot = 1;

CREATE INDEX runs_slots ON runs (queue, queue_key) WHERE slot = 2;

CREATE INDEX runs_queue_created_at ON runs (queue, created_at, id) WHERE queue IS NOT NULL;

-- One row for each key of a queue, and each definition, that may have runs in line; the lowest turn is next. A start that
-- needs a row has it locked FOR KEY SHARE, and a claim deletes only rows that no start has.
CREATE TABLE lines (
    queue text COLLATE "C" NOT NULL,
    queue_key text COLLATE "C" NOT NULL,
    definition text COLLATE "C" NOT NULL,
    turn double precision NOT NULL,
    PRIMARY KEY (queue, queue_key, definition)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX lines_queue_definition_turn ON lines (queue, definition, turn);
