-- Add actions to the end of the audit log. One writer comes after the other, by a lock that it holds until its transaction
-- is over; so this is called last. The statement behind the lock sees what the writer before has committed.
CREATE FUNCTION {append_audit}(
    p_now bigint,
    p_actions jsonb -- [{actor, verb, target, body}]
) RETURNS void LANGUAGE plpgsql VOLATILE AS $body$
DECLARE
    v_number bigint;
    v_hash text;
    v_action jsonb;
BEGIN
    PERFORM {lock_audit}();
    SELECT entry.number, entry.hash INTO v_number, v_hash FROM {schema}.audit AS entry ORDER BY entry.number DESC LIMIT 1;
    IF NOT FOUND THEN
        v_number := 0;
        v_hash := repeat('0', 64);
    END IF;
    FOR v_action IN SELECT value FROM jsonb_array_elements(p_actions) LOOP
        v_number := v_number + 1;
        v_hash := encode(
            sha256(convert_to(concat_ws(chr(10), v_hash, v_number, p_now, v_action ->> 'body'), 'UTF8')), 'hex'
        );
        INSERT INTO {schema}.audit (number, at, actor, verb, target, body, hash)
        VALUES (
            v_number, p_now, v_action ->> 'actor', v_action ->> 'verb', v_action ->> 'target', v_action ->> 'body', v_hash
        );
    END LOOP;
END
$body$;
