-- A replaced run makes room for its successor.
UPDATE outlive_runs
SET id = ?3, root_id = ?4, parent_id = ?5
WHERE
    ((key = ?1 AND number = 0 AND ?2 = 0) OR (journal = ?1 AND number = ?2 AND number > 0))
    AND (id <> ?3 OR root_id <> ?4 OR parent_id IS NOT ?5)
