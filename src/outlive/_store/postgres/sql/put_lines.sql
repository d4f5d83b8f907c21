SELECT {put_lines}($1::bigint[])
