-- Handles for new journals; what is not used is lost.
SELECT nextval('{sequence}') FROM generate_series(1, $1::integer)
