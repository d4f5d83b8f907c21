-- Schedules: what they are and how far they have come is in `data`, which the store does not read.
CREATE TABLE outlive_schedules (
    name TEXT PRIMARY KEY,
    next_at INTEGER, -- When a worker should look at it; NULL: never.
    revision INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX outlive_schedules_next_at ON outlive_schedules (next_at, name) WHERE next_at IS NOT NULL;
