-- When a blob was last put, said to be in use, or named by a tree that was deleted. Rows that exist are not written again.
ALTER TABLE blobs ADD COLUMN kept_at bigint NOT NULL DEFAULT (extract(epoch FROM now()) * 1000000)::bigint;

-- A tree that is deleted takes its watches along.
CREATE INDEX watches_watcher ON watches (watcher);

-- Retention deletes a steady share of these tables: their dead rows are to be cleaned up while they are few.
ALTER TABLE events SET (autovacuum_vacuum_scale_factor = 0.05);

ALTER TABLE items SET (autovacuum_vacuum_scale_factor = 0.05);

ALTER TABLE inbox_keys SET (autovacuum_vacuum_scale_factor = 0.05);

ALTER TABLE tags SET (autovacuum_vacuum_scale_factor = 0.05);

ALTER TABLE blobs SET (autovacuum_vacuum_scale_factor = 0.05);
