SELECT checkpoint.sequence, checkpoint.format, checkpoint.crc, checkpoint.body, checkpoint.output
FROM {schema}.checkpoints AS checkpoint
WHERE checkpoint.run_id = $1
ORDER BY checkpoint.sequence
