-- What kind of server this is, and what it does to keep its word.
SELECT
    current_setting('server_version_num')::integer AS version,
    pg_is_in_recovery() AS is_replica,
    current_setting('transaction_read_only') = 'on' AS is_read_only,
    pg_encoding_to_char(encoding) AS encoding,
    current_setting('fsync') AS fsync,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('transaction_isolation') AS isolation,
    quote_ident(current_database()) AS database,
    quote_ident(current_user) AS user
FROM pg_database
WHERE datname = current_database()
