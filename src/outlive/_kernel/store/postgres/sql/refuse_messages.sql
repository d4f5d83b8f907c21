SELECT {refuse_messages}($1, $2)
