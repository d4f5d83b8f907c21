SELECT entry.number, entry.at, entry.body, entry.hash FROM {schema}.audit AS entry ORDER BY entry.number DESC LIMIT 1
