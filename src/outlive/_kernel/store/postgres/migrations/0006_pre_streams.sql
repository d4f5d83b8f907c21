-- What runs emit for readers. A stream is a row that knows where it ends; its items lie in chunks of many. The chunks
-- hang on the key of the stream, so that a run which goes on as its next generation takes them along with one update.
-- Both kinds of rows are written again and again while a stream grows: they need room beside them.
CREATE TABLE streams (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    journal bigint NOT NULL,
    position bigint NOT NULL DEFAULT 0,
    items bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    mark bigint NOT NULL DEFAULT 0,
    number bigint NOT NULL DEFAULT 0,
    tail bigint NOT NULL DEFAULT 0,
    run integer NOT NULL,
    tail_bytes integer NOT NULL DEFAULT 0,
    name text COLLATE "C" NOT NULL,
    head text NOT NULL DEFAULT ''
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE UNIQUE INDEX streams_journal_run_name ON streams (journal, run, name);

CREATE TABLE stream_chunks (
    stream bigint NOT NULL,
    first bigint NOT NULL,
    count integer NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (stream, first)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
