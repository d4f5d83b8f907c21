-- Which trees want to hear of the end of which run.
CREATE TABLE outlive_watches (
    run_id TEXT NOT NULL,
    watcher TEXT NOT NULL, -- The id of the root run that waits.
    key TEXT NOT NULL, -- Of the message about the end.
    PRIMARY KEY (run_id, watcher)
) STRICT, WITHOUT ROWID;
