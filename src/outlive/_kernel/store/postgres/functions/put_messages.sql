-- Judge messages one by one, in order, store the good ones, and wake the trees they are for.
--
-- The roots of these trees are locked by the caller, so two senders of one key are one after the other, and a writer
-- that releases a tree sees either this message or is seen by it.
CREATE FUNCTION {put_messages}(
    p_now bigint,
    p_messages jsonb, -- [{run_id, kind, at, name, key, payload, ended, audit, workflows, tags}]
    p_messages_max bigint, -- That may wait for one tree.
    p_blob_message integer[], -- Of which message this blob is, from 1; NULL for a blob of a change.
    p_blob_id text[],
    p_blob_data bytea[]
) RETURNS text[] LANGUAGE plpgsql VOLATILE AS $body$
DECLARE
    v_message jsonb;
    v_ordinal integer := 0;
    v_run record;
    v_delivery text;
    v_deliveries text[] := '{}';
    v_woken bigint[] := '{}';
    v_audit jsonb := '[]';
BEGIN
    FOR v_message IN SELECT value FROM jsonb_array_elements(p_messages) LOOP
        v_ordinal := v_ordinal + 1;
        SELECT run.journal, run.number, run.status, root.status AS root_status, root.workflow, root.tags
        INTO v_run
        FROM {schema}.runs AS run
        JOIN {schema}.runs AS root ON root.key = run.journal
        WHERE run.id = v_message ->> 'run_id';
        IF NOT FOUND THEN
            IF EXISTS (SELECT FROM {schema}.requests WHERE run_id = v_message ->> 'run_id') THEN
                RAISE EXCEPTION USING ERRCODE = '{conflict}', MESSAGE = 'this run was requested and is not there yet';
            END IF;
            v_delivery := 'unknown run';
        ELSIF v_message ? 'workflows' AND NOT v_message -> 'workflows' ? v_run.workflow THEN
            v_delivery := 'unknown run';
        ELSIF v_message ? 'tags' AND NOT coalesce(v_run.tags, '{}')::jsonb @> (v_message -> 'tags') THEN
            v_delivery := 'unknown run';
        -- A sender that asks again, because it never heard the answer, learns that all is well, also after the end.
        ELSIF v_message ->> 'key' <> '' AND EXISTS (
            SELECT FROM {schema}.inbox_keys AS seen
            WHERE seen.journal = v_run.journal AND md5(seen.key) = md5(v_message ->> 'key')
        ) THEN
            v_delivery := 'duplicate';
        ELSIF v_run.status IN {ended} OR v_run.root_status IN {ended} THEN
            v_delivery := 'finished';
        ELSIF (
            SELECT count(*) >= p_messages_max
            FROM (SELECT FROM {schema}.inbox AS message WHERE message.journal = v_run.journal LIMIT p_messages_max) AS waiting
        ) THEN
            v_delivery := 'full';
        ELSE
            v_delivery := 'accepted';
            INSERT INTO {schema}.inbox (journal, run, kind, at, name, key, payload, ended)
            VALUES (
                v_run.journal, v_run.number, v_message ->> 'kind', (v_message ->> 'at')::bigint,
                v_message ->> 'name', v_message ->> 'key', v_message ->> 'payload', v_message ->> 'ended'
            );
            IF v_message ->> 'key' <> '' THEN
                INSERT INTO {schema}.inbox_keys (journal, key) VALUES (v_run.journal, v_message ->> 'key');
            END IF;
            IF p_blob_id IS NOT NULL THEN
                INSERT INTO {schema}.blobs (id, data, kept_at)
                SELECT new.id, new.data, p_now
                FROM unnest(p_blob_message, p_blob_id, p_blob_data) AS new (message, id, data)
                WHERE new.message = v_ordinal
                ORDER BY new.id
                ON CONFLICT (id) DO NOTHING;
            END IF;
            v_woken := v_woken || v_run.journal;
            IF v_message ? 'audit' THEN
                v_audit := v_audit || (v_message -> 'audit');
            END IF;
        END IF;
        v_deliveries := v_deliveries || v_delivery;
    END LOOP;
    PERFORM {wake_for_inbox}(p_now, v_woken);
    IF v_audit <> '[]' THEN
        PERFORM {append_audit}(p_now, v_audit);
    END IF;
    RETURN v_deliveries;
END
$body$;
