-- The first ?2 schedules that a worker should look at by the instant ?1.
SELECT name, next_at, revision, data
FROM outlive_schedules
WHERE next_at <= ?1
ORDER BY next_at, name
LIMIT ?2
