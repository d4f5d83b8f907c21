-- Checkpoints of programs that keep their own state. They lie in the order in which they came, and may be large: only
-- the small index is ordered by run.
CREATE TABLE outlive_checkpoints (
    key INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    format INTEGER NOT NULL,
    crc INTEGER NOT NULL,
    body BLOB NOT NULL,
    output BLOB -- NULL: none, which is not the same as an empty one.
) STRICT;

CREATE UNIQUE INDEX outlive_checkpoints_run_id_sequence ON outlive_checkpoints (run_id, sequence);
