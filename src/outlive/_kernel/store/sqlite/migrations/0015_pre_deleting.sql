-- When each blob was last put, said to be in use, or named by a tree that was deleted. Apart from the blobs: a row that
-- holds megabytes is not written again for this.
CREATE TABLE outlive_blob_uses (
    id TEXT PRIMARY KEY,
    kept_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX outlive_blob_uses_kept_at ON outlive_blob_uses (kept_at);

INSERT INTO outlive_blob_uses (id, kept_at)
SELECT id, CAST(unixepoch('now') AS INTEGER) * 1000000 FROM outlive_blobs;

-- A tree that is deleted takes its watches along.
CREATE INDEX outlive_watches_watcher ON outlive_watches (watcher);
