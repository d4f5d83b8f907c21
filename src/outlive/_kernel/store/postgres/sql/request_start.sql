SELECT {request_start}(CAST($1 AS text), CAST($2 AS text), CAST($3 AS text))
