-- What a cell holds.
SELECT data FROM {schema}.cells WHERE name = $1
