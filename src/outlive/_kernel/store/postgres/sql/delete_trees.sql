SELECT {delete_trees}({instant}($1::bigint), $2::bigint[], $3::bigint)
