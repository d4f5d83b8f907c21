-- What a tree has to read makes it due.
SELECT {wake_for_inbox}({instant}($2), ARRAY[$1::bigint])
