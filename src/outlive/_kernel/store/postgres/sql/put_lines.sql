SELECT {put_lines}($1::text[], $2::text[], $3::text[])
