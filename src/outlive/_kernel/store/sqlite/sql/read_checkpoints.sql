SELECT sequence, format, crc, body, output FROM outlive_checkpoints WHERE run_id = ?1 ORDER BY sequence
