-- The handle before that of the next new journal, and which of these ids are taken. A handle is not below the instant ?2:
-- the sequence goes back with a file that goes back, and the clock does not.
SELECT
    max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outlive_runs'), 0), ?2),
    (SELECT json_group_array(id) FROM outlive_runs WHERE id IN (SELECT value FROM json_each(?1)))
