-- Child runs, new ones and others, either of trees that exist or of new ones (`p_is_new`) that are not `p_lost`.
CREATE FUNCTION {put_children}(
    {run_parameters},
    p_lost bigint[],
    p_is_new boolean
) RETURNS void LANGUAGE plpgsql VOLATILE AS $body$
BEGIN
    IF array_position(p_run_key, NULL) IS NULL THEN
        RETURN; -- Only a child has no key.
    END IF;
    INSERT INTO {schema}.runs ({child_names})
    SELECT {new_child}
    FROM unnest({run_arrays}) AS new ({run_names})
    WHERE
        new.number > 0
        AND (array_position(p_run_key, new.journal) IS NOT NULL) = p_is_new
        AND (p_lost IS NULL OR new.journal <> ALL (p_lost))
    ORDER BY new.journal, new.number
    ON CONFLICT (journal, number) WHERE number > 0 DO UPDATE SET {state_set};
END
$body$;
