-- Another queue, key and priority of the root ?1.
UPDATE outlive_runs
SET queue = ?2, queue_key = ?3, lead = ?4
WHERE key = ?1
