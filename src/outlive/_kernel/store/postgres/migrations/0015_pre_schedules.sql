-- Schedules: what they are and how far they have come is in `data`, which the store does not read.
CREATE TABLE schedules (
    name text COLLATE "C" PRIMARY KEY,
    next_at bigint, -- When a worker should look at it; NULL: never.
    revision bigint NOT NULL,
    data bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX schedules_next_at ON schedules (next_at, name) WHERE next_at IS NOT NULL;
