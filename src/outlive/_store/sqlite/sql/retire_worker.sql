UPDATE outlive_workers SET is_retired = 1 WHERE id = ?1
