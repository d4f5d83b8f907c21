-- These sessions go on without a lock: from now on only their leases say that they are alive.
UPDATE outlive_workers SET lock_file = NULL WHERE id IN (SELECT value FROM json_each(?1))
