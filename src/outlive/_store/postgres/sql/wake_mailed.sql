-- What a tree has to read makes it due.
SELECT {schema}.wake_for_mail({schema}.instant($2), ARRAY[$1::bigint])
