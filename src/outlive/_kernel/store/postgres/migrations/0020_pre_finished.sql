-- Runs are found by when they ended; open runs are not in here.
CREATE INDEX runs_finished_at ON runs (finished_at) WHERE finished_at IS NOT NULL;
