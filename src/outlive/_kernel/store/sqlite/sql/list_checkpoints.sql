-- As bytes: an id may be no text any more.
SELECT DISTINCT CAST(run_id AS BLOB) FROM outlive_checkpoints WHERE run_id > CAST(?1 AS TEXT) ORDER BY run_id LIMIT ?2
