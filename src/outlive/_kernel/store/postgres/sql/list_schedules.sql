-- The first $2 schedules behind the name $1.
SELECT schedule.name, schedule.next_at, schedule.revision, schedule.data
FROM {schema}.schedules AS schedule
WHERE schedule.name > $1
ORDER BY schedule.name
LIMIT $2::integer
