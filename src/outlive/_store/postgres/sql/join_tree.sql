SELECT {schema}.join_tree(CAST($1 AS bigint), CAST($2 AS text), CAST($3 AS text))
