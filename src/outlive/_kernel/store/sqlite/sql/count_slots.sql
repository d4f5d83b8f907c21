-- How many slots of queue ?1 are taken, and how many of them worker ?2 has: by up to ?3 and ?4 runs.
SELECT
    (SELECT coalesce(sum(slots), 0) FROM (SELECT slots FROM outlive_runs WHERE queue = ?1 AND slot = 2 LIMIT ?3)),
    (
        SELECT coalesce(sum(slots), 0)
        FROM (
            SELECT slots
            FROM outlive_runs
            WHERE owner = ?2 AND queue = ?1 AND queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL
            LIMIT ?4
        )
    )
