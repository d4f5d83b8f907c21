-- How many runs of queue ?1 are in line, hold a slot, and come later, up to ?2 of each; since when the one waits longest that
-- is first in one of the first ?2 lines; and keys of runs that hold slots.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM outlive_runs WHERE queue = ?1 AND slot = 1 LIMIT ?2)),
    (SELECT count(*) FROM (SELECT 1 FROM outlive_runs WHERE queue = ?1 AND slot = 2 LIMIT ?2)),
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
        SELECT min((
            SELECT run.wake_at
            FROM outlive_runs AS run
            WHERE
                run.queue = ?1 AND run.queue_key = line.queue_key AND run.definition = line.definition AND run.slot = 1
            ORDER BY run.wake_at - run.lead
            LIMIT 1
        ))
        FROM (SELECT queue_key, definition FROM outlive_lines WHERE queue = ?1 LIMIT ?2) AS line
    ),
    (
        SELECT json_group_array(held.key)
        FROM (SELECT key FROM outlive_runs WHERE queue = ?1 AND slot = 2 LIMIT ?3) AS held
    )
