-- When a worker should look at a schedule next, later than the instant ?1.
SELECT min(next_at)
FROM outlive_schedules
WHERE next_at > ?1
