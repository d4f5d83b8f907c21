-- The schedules with the names in the JSON list ?1.
SELECT schedule.name, schedule.next_at, schedule.revision, schedule.data
FROM json_each(?1) AS wanted
CROSS JOIN outlive_schedules AS schedule ON schedule.name = wanted.value
