-- Ask for a run, in the transaction of a user: true, or false if its id is taken. Who has asked for the same id before,
-- and is not through, is waited for.
CREATE FUNCTION {request_start}(p_run_id text, p_tree text, p_channel text) RETURNS boolean LANGUAGE plpgsql VOLATILE
AS $body$
BEGIN
    IF EXISTS (SELECT FROM {schema}.runs WHERE id = p_run_id) THEN
        RETURN false;
    END IF;
    INSERT INTO {schema}.requests (run_id, tree) VALUES (p_run_id, p_tree) ON CONFLICT DO NOTHING;
    IF FOUND AND p_channel IS NOT NULL THEN
        PERFORM pg_notify(p_channel, '');
    END IF;
    RETURN FOUND;
END
$body$;
