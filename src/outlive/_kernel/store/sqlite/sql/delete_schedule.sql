-- Gives a row if the schedule ?1 had the revision ?2.
DELETE FROM outlive_schedules
WHERE name = ?1 AND revision = ?2
RETURNING name
