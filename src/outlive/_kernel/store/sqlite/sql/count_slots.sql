-- How many slots of queue ?1 are taken, up to ?3, and how many of them worker ?2 has, up to ?4.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM outlive_runs WHERE queue = ?1 AND slot = 2 LIMIT ?3)),
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM outlive_runs
            WHERE owner = ?2 AND queue = ?1 AND queue IS NOT NULL AND slot <> 1 AND wake_at IS NOT NULL
            LIMIT ?4
        )
    )
