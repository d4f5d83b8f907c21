-- A run of an ended tree makes room for its successor; a run of any other tree stays as it is.
UPDATE outlive_runs
SET id = ?3, root_id = ?4, parent_id = ?5
WHERE
    ((key = ?1 AND number = 0 AND ?2 = 0) OR (journal = ?1 AND number = ?2 AND number > 0))
    AND (
        SELECT root.status IN {ended}
        FROM outlive_runs AS root
        WHERE root.key = ?1
    )
