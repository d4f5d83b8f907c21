SELECT {append_streams}($1::jsonb, $2::bigint[], $3) AS answers
