-- Equal content is stored once.
INSERT INTO {schema}.blobs (id, data, kept_at)
SELECT new.id, new.data, {instant}($1::bigint) FROM unnest($2::text[], $3::bytea[]) AS new (id, data) ORDER BY new.id
ON CONFLICT (id) DO NOTHING
