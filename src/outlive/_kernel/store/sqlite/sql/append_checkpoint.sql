-- Gives a row if it is there now: because it is new, or because the very same one was there.
INSERT INTO outlive_checkpoints (run_id, sequence, format, crc, body, output) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (run_id, sequence) DO UPDATE SET format = excluded.format
WHERE
    format = excluded.format AND crc = excluded.crc AND body = excluded.body AND output IS excluded.output
RETURNING sequence
