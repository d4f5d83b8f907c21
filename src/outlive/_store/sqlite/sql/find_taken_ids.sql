-- The last key that was given out, and which of these ids are taken.
SELECT
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'outlive_runs'), 0),
    (SELECT json_group_array(id) FROM outlive_runs WHERE id IN (SELECT value FROM json_each(?1)))
