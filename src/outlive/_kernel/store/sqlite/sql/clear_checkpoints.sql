DELETE FROM outlive_checkpoints WHERE run_id = ?1
