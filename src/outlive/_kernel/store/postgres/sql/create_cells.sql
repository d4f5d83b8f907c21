-- Cells to lock, that hold nothing yet.
INSERT INTO {schema}.cells (name)
SELECT new.name FROM unnest($1::text[]) AS new (name) ORDER BY new.name
ON CONFLICT (name) DO NOTHING
