SELECT relname, n_tup_ins + n_tup_upd + n_tup_del AS writes
FROM pg_stat_user_tables
WHERE schemaname = 'outlive'
ORDER BY relname
