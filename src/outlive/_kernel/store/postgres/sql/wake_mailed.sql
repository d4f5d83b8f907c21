-- What a tree has to read makes it due.
SELECT {wake_for_mail}({instant}($2), ARRAY[$1::bigint])
