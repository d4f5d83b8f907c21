-- What a session can run by now.
UPDATE {schema}.workers SET definitions = $2 WHERE id = $1 AND NOT is_retired
