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
    INSERT INTO {schema}.runs (
        id, journal, number, root_id, parent_id, workflow, version, nonce, created_at, tags, status, waits,
        wake_at, owner, epoch, attempts, updated_at, finished_at, timeout_at, reason, result, failure, published
    )
    SELECT
        new.id, new.journal, new.number, new.root_id, new.parent_id, new.workflow, new.version, new.nonce,
        new.created_at, new.tags, new.status, new.waits, new.wake_at, new.owner, new.epoch, new.attempts,
        new.updated_at, new.finished_at, new.timeout_at, new.reason, new.result, new.failure, new.published
    FROM unnest({run_arrays}) AS new ({run_names})
    WHERE
        new.number > 0
        AND (array_position(p_run_key, new.journal) IS NOT NULL) = p_is_new
        AND (p_lost IS NULL OR new.journal <> ALL (p_lost))
    ORDER BY new.journal, new.number
    ON CONFLICT (journal, number) WHERE number > 0 DO UPDATE SET
        status = excluded.status,
        waits = excluded.waits,
        wake_at = excluded.wake_at,
        owner = excluded.owner,
        epoch = excluded.epoch,
        attempts = excluded.attempts,
        updated_at = excluded.updated_at,
        finished_at = excluded.finished_at,
        timeout_at = excluded.timeout_at,
        reason = excluded.reason,
        result = excluded.result,
        failure = excluded.failure,
        published = excluded.published;
END
$body$;
