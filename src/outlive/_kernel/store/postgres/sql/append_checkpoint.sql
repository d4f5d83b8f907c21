-- Gives a row if it is there now: because it is new, or because the very same one was there.
INSERT INTO {schema}.checkpoints AS old (run_id, sequence, format, crc, body, output)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (run_id, sequence) DO UPDATE SET format = excluded.format
WHERE
    old.format = excluded.format AND old.crc = excluded.crc AND old.body = excluded.body
    AND old.output IS NOT DISTINCT FROM excluded.output
RETURNING old.sequence
