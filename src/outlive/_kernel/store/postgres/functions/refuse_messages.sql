-- Messages that the owner of their tree answers without making them events. The trees are locked, so that no worker takes
-- one over in between: a message is refused or consumed, never both.
CREATE FUNCTION {refuse_messages}(
    p_worker text,
    p_refusals jsonb -- [{journal, message, key, answer}]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $body$
DECLARE
    v_owned bigint[];
BEGIN
    PERFORM FROM {schema}.runs AS root
    WHERE root.key IN (SELECT (value ->> 'journal')::bigint FROM jsonb_array_elements(p_refusals))
    ORDER BY root.key
    FOR NO KEY UPDATE;
    SELECT array_agg(root.key)
    INTO v_owned
    FROM {schema}.runs AS root
    WHERE
        root.key IN (SELECT (value ->> 'journal')::bigint FROM jsonb_array_elements(p_refusals))
        AND root.owner = p_worker;
    WITH refused AS (
        DELETE FROM {schema}.inbox AS message
        USING jsonb_to_recordset(p_refusals) AS done (journal bigint, message bigint)
        WHERE message.id = done.message AND message.journal = done.journal AND message.journal = ANY (v_owned)
        RETURNING message.id
    )
    UPDATE {schema}.inbox_keys AS seen
    SET answer = new.answer
    FROM jsonb_to_recordset(p_refusals) AS new (journal bigint, message bigint, key text, answer text)
    JOIN refused ON refused.id = new.message
    WHERE seen.journal = new.journal AND md5(seen.key) = md5(new.key) AND seen.answer IS NULL;
END
$body$;
