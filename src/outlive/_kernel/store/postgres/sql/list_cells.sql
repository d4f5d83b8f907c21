-- Names of cells behind $1, which may be none, at most $2; without those that were only made to be locked.
SELECT name FROM {schema}.cells
WHERE ($1::text IS NULL OR name > $1) AND data IS NOT NULL
ORDER BY name
LIMIT $2
