INSERT INTO outlive_inbox (journal, run, kind, at, name, key, payload, ended) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
