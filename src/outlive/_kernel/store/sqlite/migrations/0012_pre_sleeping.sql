-- Runs that a timer will wake, in the order of their creation: only runs that sleep pay for it. The text is looked at, and not read as
-- JSON, which may be damaged: no quote stands in a string without a backslash.
CREATE INDEX outlive_runs_sleeping ON outlive_runs (created_at, id) WHERE instr(waits, '"kind":"timer"') > 0;
