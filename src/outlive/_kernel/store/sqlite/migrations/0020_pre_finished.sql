-- Runs are found by when they ended; open runs are not in here.
CREATE INDEX outlive_runs_finished_at ON outlive_runs (finished_at) WHERE finished_at IS NOT NULL;
