DELETE FROM {schema}.checkpoints AS checkpoint WHERE checkpoint.run_id = $1
