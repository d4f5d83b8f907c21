-- A later watch of the same watcher takes the place of an earlier one.
INSERT INTO outlive_watches (run_id, watcher, key) VALUES (?, ?, ?)
ON CONFLICT (run_id, watcher) DO UPDATE SET key = excluded.key
