-- Renew a lease until ?2, of a session that has not ended and knows of the renewal before, until ?3.
UPDATE outlive_workers SET expires_at = ?2 WHERE id = ?1 AND NOT is_retired AND expires_at >= ?3
