-- The revisions of these schedules; no other transaction changes them until the end of the transaction. All lock them in
-- the same order.
SELECT schedule.name, schedule.revision
FROM {schema}.schedules AS schedule
WHERE schedule.name = any($1::text[])
ORDER BY schedule.name
FOR UPDATE
