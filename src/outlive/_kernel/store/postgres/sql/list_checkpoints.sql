SELECT DISTINCT checkpoint.run_id FROM {schema}.checkpoints AS checkpoint
WHERE checkpoint.run_id > $1
ORDER BY checkpoint.run_id
LIMIT $2
