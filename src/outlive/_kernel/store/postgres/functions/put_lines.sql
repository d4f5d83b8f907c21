-- Make lines known, given by one array for each column and without doubles, and keep claims from forgetting them before this
-- transaction ends. A new one is next, or as late as those that were served last.
CREATE FUNCTION {put_lines}(p_queue text[], p_queue_key text[], p_definition text[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $body$
DECLARE
    v_kept bigint;
BEGIN
    LOOP
        INSERT INTO {schema}.lines (queue, queue_key, definition, turn)
        SELECT new.queue, new.queue_key, new.definition, 0
        FROM unnest(p_queue, p_queue_key, p_definition) AS new (queue, queue_key, definition)
        ORDER BY new.queue, new.queue_key, new.definition
        ON CONFLICT DO NOTHING;
        PERFORM
        FROM unnest(p_queue, p_queue_key, p_definition) AS new (queue, queue_key, definition)
        JOIN {schema}.lines AS line
            ON line.queue = new.queue AND line.queue_key = new.queue_key AND line.definition = new.definition
        FOR KEY SHARE OF line;
        GET DIAGNOSTICS v_kept = ROW_COUNT;
        -- A claim has found one of them empty and forgotten it since we looked: once more.
        EXIT WHEN v_kept >= coalesce(cardinality(p_queue), 0);
    END LOOP;
END
$body$;
