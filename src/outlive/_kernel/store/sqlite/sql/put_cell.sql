-- Cell ?1 holds ?2 from now on.
INSERT INTO outlive_cells (name, data) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET data = excluded.data
