SELECT {append_audit}({instant}($1::bigint), $2::jsonb)
