DELETE FROM outlive_streams WHERE journal IN (SELECT value FROM json_each(?1))
