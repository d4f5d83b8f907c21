-- Which trees want to hear of the end of which run.
CREATE TABLE watches (
    run_id text COLLATE "C" NOT NULL,
    watcher text COLLATE "C" NOT NULL, -- The id of the root run that waits.
    key text NOT NULL, -- Of the message about the end.
    PRIMARY KEY (run_id, watcher)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
