-- What these cells hold, and the instant; no other transaction changes them until the end of the transaction. All lock them in
-- the same order.
SELECT cell.name, cell.data, {instant}($1) AS now
FROM {schema}.cells AS cell
WHERE cell.name = any($2::text[])
ORDER BY cell.name
FOR UPDATE
