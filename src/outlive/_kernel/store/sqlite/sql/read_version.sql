SELECT coalesce(max(version), 0) FROM outlive_migrations
