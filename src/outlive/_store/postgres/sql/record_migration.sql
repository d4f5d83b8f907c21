INSERT INTO {schema}.migrations (version, name, applied_at) VALUES ($1, $2, {schema}.instant(NULL))
