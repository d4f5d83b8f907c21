-- The names of those that were not there.
INSERT INTO {schema}.schedules (name, revision, next_at, data)
SELECT new.name, new.revision, new.next_at, new.data
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[]) AS new (name, revision, next_at, data)
ORDER BY new.name
ON CONFLICT (name) DO NOTHING
RETURNING name
