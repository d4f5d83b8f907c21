-- Gives a row if there was no such schedule.
INSERT INTO outlive_schedules (name, revision, next_at, data) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (name) DO NOTHING
RETURNING name
