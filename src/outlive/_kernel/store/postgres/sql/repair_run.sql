INSERT INTO {schema}.runs AS run ({run_names})
VALUES ({run_numbers})
ON CONFLICT (key) DO UPDATE SET {run_set}
