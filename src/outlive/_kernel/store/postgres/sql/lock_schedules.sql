-- The revisions of the schedules $1, locked until this transaction ends. Every transaction locks them in the order of
-- their names, so that no two wait for each other.
SELECT schedule.name, schedule.revision
FROM {schema}.schedules AS schedule
WHERE schedule.name = any($1::text[])
ORDER BY schedule.name
FOR UPDATE
