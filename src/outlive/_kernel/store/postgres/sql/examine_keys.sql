SELECT seen.journal, seen.key, seen.answer IS NOT NULL FROM {schema}.inbox_keys AS seen WHERE seen.journal = ANY ($1::bigint[])
