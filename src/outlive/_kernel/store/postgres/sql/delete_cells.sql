-- These cells, which are locked, hold nothing from now on. A transaction that waits for one of them finds it gone, and makes it.
DELETE FROM {schema}.cells WHERE name = any($1::text[])
