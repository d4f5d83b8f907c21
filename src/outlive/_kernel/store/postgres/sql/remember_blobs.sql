SELECT {remember_blobs}({instant}($1::bigint), $2::text[])
