-- Child runs that a snapshot stands for.
DELETE FROM outlive_runs WHERE journal = ?1 AND number > 0 AND number < ?2
