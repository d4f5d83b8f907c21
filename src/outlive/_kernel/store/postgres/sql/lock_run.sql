SELECT run.key FROM {schema}.runs AS run WHERE run.key = $1 FOR UPDATE
