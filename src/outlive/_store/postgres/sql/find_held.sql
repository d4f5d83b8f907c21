SELECT {schema}.find_held($1)
