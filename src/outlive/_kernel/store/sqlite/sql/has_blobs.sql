SELECT EXISTS (SELECT 1 FROM outlive_blob_uses)
