-- What runs emit for readers. A stream is a row that knows where it ends; its items lie in chunks of many. The chunks
-- hang on the key of the stream, so that a run which goes on as its next generation takes them along with one update.
CREATE TABLE outlive_streams (
    key INTEGER PRIMARY KEY,
    journal INTEGER NOT NULL,
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    position INTEGER NOT NULL,
    items INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    mark INTEGER NOT NULL,
    number INTEGER NOT NULL,
    tail INTEGER NOT NULL,
    tail_bytes INTEGER NOT NULL,
    head BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX outlive_streams_journal_run_name ON outlive_streams (journal, run, name);

CREATE TABLE outlive_stream_chunks (
    key INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX outlive_stream_chunks_stream_first ON outlive_stream_chunks (stream, first);
