-- These schedules, which are locked, are gone.
DELETE FROM {schema}.schedules AS schedule
WHERE schedule.name = any($1::text[])
