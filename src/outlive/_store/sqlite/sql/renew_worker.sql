UPDATE outlive_workers SET expires_at = ?2 WHERE id = ?1 AND NOT is_retired
