-- The blob ?1 was put or is in use at ?2; nothing is written if that was said less than ?3 microseconds before.
INSERT INTO outlive_blob_uses (id, kept_at) VALUES (?1, ?2)
ON CONFLICT (id) DO UPDATE SET kept_at = excluded.kept_at WHERE kept_at < excluded.kept_at - ?3
