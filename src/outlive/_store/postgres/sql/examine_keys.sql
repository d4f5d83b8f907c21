SELECT seen.journal, seen.key FROM {schema}.inbox_keys AS seen WHERE seen.journal = ANY ($1::bigint[])
