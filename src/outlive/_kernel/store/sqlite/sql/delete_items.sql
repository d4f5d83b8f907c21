DELETE FROM outlive_items WHERE journal IN (SELECT value FROM json_each(?1))
