-- The first ?2 schedules behind the name ?1.
SELECT name, next_at, revision, data
FROM outlive_schedules
WHERE name > ?1
ORDER BY name
LIMIT ?2
