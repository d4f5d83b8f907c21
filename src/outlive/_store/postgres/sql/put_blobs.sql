-- Equal content is stored once.
INSERT INTO {schema}.blobs (id, data)
SELECT new.id, new.data FROM unnest($1::text[], $2::bytea[]) AS new (id, data) ORDER BY new.id
ON CONFLICT (id) DO NOTHING
