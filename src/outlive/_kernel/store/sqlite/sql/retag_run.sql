-- Other tags for run ?2 in the tree ?1.
UPDATE outlive_runs
SET tags = ?3
WHERE (key = ?1 AND number = 0 AND ?2 = 0) OR (journal = ?1 AND number = ?2 AND number > 0)
