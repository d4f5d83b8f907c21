INSERT INTO {schema}.migrations (version, name, applied_at)
VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
