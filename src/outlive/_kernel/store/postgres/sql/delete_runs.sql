DELETE FROM {schema}.runs AS run WHERE run.key = ANY ($1::bigint[])
