INSERT INTO outlive_runs ({run_names})
VALUES {run_row}
ON CONFLICT (key) DO UPDATE SET {run_set}
