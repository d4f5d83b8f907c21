-- End a session; its lease ends with it, at ?2.
UPDATE outlive_workers SET is_retired = 1, expires_at = min(expires_at, ?2) WHERE id = ?1 AND NOT is_retired
