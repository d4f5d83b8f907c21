SELECT {run_columns} FROM {schema}.runs AS run WHERE run.id = ANY ($1::text[])
