-- Checkpoints of programs that keep their own state.
CREATE TABLE checkpoints (
    run_id text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    crc bigint NOT NULL,
    format integer NOT NULL,
    body bytea NOT NULL,
    output bytea, -- NULL: none, which is not the same as an empty one.
    PRIMARY KEY (run_id, sequence)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
