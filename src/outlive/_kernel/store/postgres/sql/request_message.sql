SELECT {request_message}(CAST($1 AS text), CAST($2 AS boolean), CAST($3 AS text), CAST($4 AS text))
