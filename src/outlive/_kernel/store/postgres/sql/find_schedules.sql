-- The schedules with these names.
SELECT schedule.name, schedule.next_at, schedule.revision, schedule.data
FROM {schema}.schedules AS schedule
WHERE schedule.name = any($1::text[])
