-- Make the lines known in which these runs are, and keep claims from forgetting them before this transaction ends. A new one
-- is next, or as late as those that were served last.
CREATE FUNCTION {put_lines}(p_keys bigint[]) RETURNS void LANGUAGE plpgsql VOLATILE AS $body$
DECLARE
    v_wanted bigint;
    v_kept bigint;
BEGIN
    LOOP
        INSERT INTO {schema}.lines (queue, queue_key, definition, turn)
        SELECT DISTINCT run.queue, run.queue_key, run.definition, 0
        FROM {schema}.runs AS run
        WHERE run.key = ANY (p_keys) AND run.slot = 1
        ORDER BY run.queue, run.queue_key, run.definition
        ON CONFLICT DO NOTHING;
        SELECT count(DISTINCT (run.queue, run.queue_key, run.definition))
        INTO v_wanted
        FROM {schema}.runs AS run
        WHERE run.key = ANY (p_keys) AND run.slot = 1;
        PERFORM
        FROM {schema}.lines AS line
        WHERE
            (line.queue, line.queue_key, line.definition) IN (
                SELECT run.queue, run.queue_key, run.definition
                FROM {schema}.runs AS run
                WHERE run.key = ANY (p_keys) AND run.slot = 1
            )
        ORDER BY line.queue, line.queue_key, line.definition
        FOR KEY SHARE OF line;
        GET DIAGNOSTICS v_kept = ROW_COUNT;
        -- A claim has found one of them empty and forgotten it since we looked: once more.
        EXIT WHEN v_kept >= v_wanted;
    END LOOP;
END
$body$;
