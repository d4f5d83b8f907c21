-- The streams of the root of the ended tree ?1 go on in its successor ?2. What they have is not counted there, and no
-- line was written by its journal.
UPDATE outlive_streams
SET journal = ?2, items = 0, bytes = 0, mark = 0, number = 0
WHERE
    journal = ?1 AND run = 0
    AND (
        SELECT root.status IN {ended}
        FROM outlive_runs AS root
        WHERE root.key = ?1
    )
