-- End one of our own sessions, unless it has ended and another session has its number by now.
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE pid = $1 AND usename = session_user AND application_name = current_setting('application_name')
