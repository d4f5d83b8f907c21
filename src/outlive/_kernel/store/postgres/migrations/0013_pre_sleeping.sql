-- Runs that a timer will wake, in the order of their creation: only runs that sleep pay for it. The text is looked at, and not read as
-- JSON, which may be damaged: no quote stands in a string without a backslash.
CREATE INDEX runs_sleeping ON runs (created_at, id) WHERE waits LIKE '%"kind":"timer"%';
