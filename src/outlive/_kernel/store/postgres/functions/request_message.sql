-- Ask for a message to a run, in the transaction of a user: "accepted", "finished" or "unknown run". The run may be one
-- that was only asked for, in this transaction or before. No run has an id that begins with "@", and the messages of
-- one transaction are in the order in which they were asked for.
CREATE FUNCTION {request_message}(p_run_id text, p_may_start boolean, p_request text, p_channel text)
RETURNS text LANGUAGE plpgsql VOLATILE AS $body$
DECLARE
    v_is_over boolean;
    v_at bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
    SELECT run.status IN {ended} OR root.status IN {ended}
    INTO v_is_over
    FROM {schema}.runs AS run
    JOIN {schema}.runs AS root ON root.key = run.journal
    WHERE run.id = p_run_id;
    IF v_is_over THEN
        RETURN 'finished';
    END IF;
    IF v_is_over IS NULL AND NOT p_may_start AND NOT EXISTS (SELECT FROM {schema}.requests WHERE run_id = p_run_id) THEN
        RETURN 'unknown run';
    END IF;
    INSERT INTO {schema}.requests (run_id, tree)
    VALUES ('@' || lpad(v_at::text, 20, '0') || '/' || gen_random_uuid(), p_request);
    IF p_channel IS NOT NULL THEN
        PERFORM pg_notify(p_channel, '');
    END IF;
    RETURN 'accepted';
END
$body$;
