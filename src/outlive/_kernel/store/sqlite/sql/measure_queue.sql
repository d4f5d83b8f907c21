-- How many runs of queue ?1 are in line, hold a slot, and come later, up to ?2 of each; and keys of runs that hold slots.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM outlive_runs WHERE queue = ?1 AND slot = 1 LIMIT ?2)),
    (SELECT count(*) FROM (SELECT 1 FROM outlive_runs WHERE queue = ?1 AND slot = 2 LIMIT ?2)),
    (SELECT sum(slots) FROM (SELECT slots FROM outlive_runs WHERE queue = ?1 AND slot = 2 LIMIT ?2)),
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM outlive_runs
            WHERE
                owner = '' AND queue = ?1 AND queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL AND slot = 0
            LIMIT ?2
        )
    ),
    (
        SELECT json_group_array(held.key)
        FROM (SELECT key FROM outlive_runs WHERE queue = ?1 AND slot = 2 LIMIT ?3) AS held
    )
