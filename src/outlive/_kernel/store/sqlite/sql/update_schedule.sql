-- Gives a row if the schedule ?1 had the revision ?2.
UPDATE outlive_schedules SET revision = ?3, next_at = ?4, data = ?5
WHERE name = ?1 AND revision = ?2
RETURNING name
