-- The one text that a statement gives, as bytes: a text in one of its rows is no UTF-8 any more.
SELECT CAST(({statement}) AS BLOB)
