DELETE FROM outlive_inbox WHERE journal IN (SELECT value FROM json_each(?1))
