-- The messages for those who watch runs that have ended, and no longer the watches.
--
-- The roots of these runs are locked and written by the caller, and a watch is put only under a lock of the run: so
-- either it is seen here, or its caller sees that the run has ended. A watcher that came while the caller waited for its
-- locks is locked here, out of order.
CREATE FUNCTION {take_watches}(p_root_key bigint[], p_now bigint) RETURNS jsonb LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
AS $body$
DECLARE
    v_ends jsonb;
BEGIN
    IF NOT EXISTS (SELECT FROM {schema}.watches) THEN
        RETURN NULL;
    END IF;
    WITH taken AS (
        DELETE FROM {schema}.watches AS watch
        USING {schema}.runs AS run
        WHERE run.key = ANY (p_root_key) AND run.status = ANY ({final}) AND watch.run_id = run.id
        RETURNING watch.watcher, watch.key, run.id, run.status, run.result, run.failure, run.workflow, run.version
    )
    SELECT jsonb_agg(jsonb_build_object(
        'run_id', taken.watcher,
        'kind', 'ended',
        'at', p_now,
        'name', '',
        'key', taken.key,
        -- As text: what PostgreSQL makes of a value inside need not be what was written.
        'ended', '{"run_id":' || to_json(taken.id) || ',"status":"' || taken.status || '"'
        || coalesce(',"result":' || taken.result, '') || coalesce(',"failure":' || taken.failure, '')
        || ',"workflow":' || to_json(taken.workflow) || ',"version":' || taken.version || '}'
    ))
    INTO v_ends
    FROM taken;
    IF v_ends IS NOT NULL THEN
        PERFORM FROM {schema}.runs
        WHERE key IN (
            SELECT journal
            FROM {schema}.runs
            WHERE id IN (SELECT value ->> 'run_id' FROM jsonb_array_elements(v_ends))
        )
        ORDER BY key
        FOR NO KEY UPDATE;
    END IF;
    RETURN v_ends;
END
$body$;
