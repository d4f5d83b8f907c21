INSERT INTO outlive_inbox_keys (journal, key) VALUES (?1, ?2)
