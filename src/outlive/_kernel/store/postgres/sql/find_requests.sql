-- The runs that were asked for: those among $1, or all; at most $2.
SELECT run_id FROM {schema}.requests WHERE $1::text[] IS NULL OR run_id = ANY ($1::text[]) ORDER BY run_id LIMIT $2
