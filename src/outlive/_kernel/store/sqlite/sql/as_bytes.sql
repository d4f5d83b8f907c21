-- The one text that a statement gives, as bytes: a text in one of its rows is no longer UTF-8.
SELECT CAST(({statement}) AS BLOB)
