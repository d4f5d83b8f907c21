DELETE FROM outlive_inbox_keys WHERE journal IN (SELECT value FROM json_each(?1))
