-- Microseconds since 1970: the instant that a test gives, else the server's clock.
CREATE FUNCTION {instant}(p_now bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $body$
    SELECT coalesce(p_now, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$body$;
