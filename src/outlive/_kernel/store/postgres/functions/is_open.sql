-- Whether a queue limits nothing, given what its cell holds. See `QueueRecord.is_open`: a cell that cannot be read is not open.
CREATE FUNCTION {is_open}(p_cell bytea) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $body$
DECLARE
    v_state json;
BEGIN
    v_state := convert_from(p_cell, 'UTF8')::json;
    RETURN coalesce(
        v_state ->> 'paused',
        v_state -> 'declared' ->> 'concurrency',
        v_state -> 'declared' ->> 'per_worker',
        v_state -> 'declared' ->> 'per_key',
        v_state -> 'declared' ->> 'rate',
        v_state -> 'changed' ->> 'concurrency',
        v_state -> 'changed' ->> 'per_worker',
        v_state -> 'changed' ->> 'per_key',
        v_state -> 'changed' ->> 'rate'
    ) IS NULL;
EXCEPTION
    WHEN others THEN RETURN false;
END
$body$;
