INSERT INTO {schema}.tags (name, value, created_at, run_key) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING
