DELETE FROM {schema}.tags AS tag WHERE tag.run_key = ANY ($1::bigint[])
