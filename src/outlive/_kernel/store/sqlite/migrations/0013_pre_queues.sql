-- The queue of a root run, its key there, by how much its priority brings it forward in the line, and where it is: 0 outside,
-- 1 in line, 2 it holds a slot. NULL for runs without a queue; rows that exist are not touched.
ALTER TABLE outlive_runs ADD COLUMN queue TEXT;

ALTER TABLE outlive_runs ADD COLUMN queue_key TEXT;

ALTER TABLE outlive_runs ADD COLUMN lead INTEGER NOT NULL DEFAULT 0;

ALTER TABLE outlive_runs ADD COLUMN slot INTEGER NOT NULL DEFAULT 0;

-- Claiming, of runs without a queue: those in line must not stand in their way, however many there are.
DROP INDEX outlive_runs_owner_definition_wake_at;

CREATE INDEX outlive_runs_owner_definition_wake_at ON outlive_runs (owner, definition, wake_at)
WHERE wake_at IS NOT NULL AND number = 0 AND queue IS NULL;

-- The same of runs with a queue that are not in line: those that have a slot, and those that will get in line.
CREATE INDEX outlive_runs_owner_queue_definition_wake_at ON outlive_runs (owner, queue, definition, wake_at)
WHERE queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL;

CREATE INDEX outlive_runs_line ON outlive_runs (queue, queue_key, definition, wake_at - lead) WHERE slot = 1;

CREATE INDEX outlive_runs_slots ON outlive_runs (queue, queue_key) WHERE slot = 2;

CREATE INDEX outlive_runs_queue_created_at ON outlive_runs (queue, created_at) WHERE queue IS NOT NULL;

-- One row for each key of a queue, and each definition, that may have runs in line; the lowest turn is next.
CREATE TABLE outlive_lines (
    queue TEXT NOT NULL,
    queue_key TEXT NOT NULL,
    definition TEXT NOT NULL,
    turn REAL NOT NULL,
    PRIMARY KEY (queue, queue_key, definition)
) STRICT, WITHOUT ROWID;

CREATE INDEX outlive_lines_queue_definition_turn ON outlive_lines (queue, definition, turn);
