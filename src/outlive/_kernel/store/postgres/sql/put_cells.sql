-- These cells hold this from now on.
UPDATE {schema}.cells AS cell
SET data = new.data
FROM unnest($1::text[], $2::bytea[]) AS new (name, data)
WHERE cell.name = new.name
