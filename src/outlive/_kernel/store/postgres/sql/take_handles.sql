-- Handles for new journals; what is not used is lost.
--
-- A handle is the millisecond of this question and the low bits of a sequence. The sequence alone goes back with a store
-- that goes back; the clock does not, so no handle that such a store has forgotten comes back.
SELECT
    (((extract(EPOCH FROM clock_timestamp()) * 1000)::bigint & 4398046511103) << 21)
    | (nextval('{sequence}') & 2097151)
FROM generate_series(1, $1::integer)
