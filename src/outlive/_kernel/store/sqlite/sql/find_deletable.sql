-- Those of the trees ?1 (a JSON array of handles) that ended before ?2 and that no open run needs.
SELECT root.key, root.id
FROM json_each(?1) AS wanted
JOIN outlive_runs AS root ON root.key = wanted.value
WHERE
    root.number = 0 AND root.status IN {ended} AND root.finished_at < ?2
    -- Not the run that started it; a later generation of that one was born after it.
    AND NOT EXISTS (
        SELECT 1
        FROM outlive_runs AS starter
        JOIN outlive_runs AS top ON top.key = starter.journal
        WHERE starter.id = root.parent_id AND starter.created_at <= root.created_at AND top.status IN {alive}
    )
    -- Not a run that one of its runs started.
    AND NOT EXISTS (
        SELECT 1
        FROM outlive_runs AS member
        JOIN outlive_runs AS started ON started.parent_id = member.id
        WHERE
            (member.key = root.key OR (member.journal = root.key AND member.number > 0))
            AND started.number = 0 AND started.status IN {alive}
    )
    -- Not a run that waits for one of its runs.
    AND NOT EXISTS (
        SELECT 1
        FROM outlive_runs AS member
        JOIN outlive_waits AS wait ON wait.name = member.id
        WHERE member.key = root.key OR (member.journal = root.key AND member.number > 0)
    )
