-- Messages to a tree with these keys were taken back. The index has the hash of a key.
DELETE FROM {schema}.inbox_keys
WHERE journal = $1 AND md5(key) = ANY (ARRAY(SELECT md5(freed.key) FROM unnest($2::text[]) AS freed (key)))
