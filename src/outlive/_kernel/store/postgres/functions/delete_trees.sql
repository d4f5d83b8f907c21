-- Delete trees with everything that hangs on them; the keys of those that are gone.
--
-- Their roots are locked, and those that another caller has locked are left to it: a tree that has ended is written to only
-- to go on again, or to be deleted. So this waits for no one but for those who put an equal blob.
CREATE FUNCTION {delete_trees}(p_now bigint, p_journal bigint[], p_ended_before bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
AS $body$
DECLARE
    v_gone bigint[];
    v_ids text[];
BEGIN
    SELECT array_agg(locked.key)
    INTO v_gone
    FROM (
        SELECT root.key
        FROM {schema}.runs AS root
        WHERE
            root.key = ANY (p_journal) AND root.number = 0 AND root.status IN {ended} AND root.finished_at < p_ended_before
        FOR UPDATE SKIP LOCKED
    ) AS locked;
    IF v_gone IS NULL THEN
        RETURN '{}';
    END IF;

    SELECT array_agg(root.key), array_agg(root.id)
    INTO v_gone, v_ids
    FROM {schema}.runs AS root
    WHERE
        root.key = ANY (v_gone)
        -- Not needed by the run that started it; a later generation of that one was born after it.
        AND NOT EXISTS (
            SELECT
            FROM {schema}.runs AS starter
            JOIN {schema}.runs AS top ON top.key = starter.journal
            WHERE starter.id = root.parent_id AND starter.created_at <= root.created_at AND top.status IN {alive}
        )
        -- Not by one that a run of the tree started.
        AND NOT EXISTS (
            SELECT
            FROM {schema}.runs AS own
            JOIN {schema}.runs AS started ON started.parent_id = own.id
            WHERE
                (own.key = root.key OR (own.journal = root.key AND own.number > 0))
                AND started.number = 0 AND started.status IN {alive}
        )
        -- Not by one that waits for a run of the tree.
        AND NOT EXISTS (
            SELECT
            FROM {schema}.runs AS own
            JOIN {schema}.waits AS wait ON md5(wait.name) = md5(own.id) AND wait.name = own.id
            WHERE own.key = root.key OR (own.journal = root.key AND own.number > 0)
        );
    IF v_gone IS NULL THEN
        RETURN '{}';
    END IF;

    IF EXISTS (SELECT FROM {schema}.blobs) THEN
        PERFORM {remember_blobs}(p_now, ARRAY(
            SELECT DISTINCT (regexp_matches(said.body, '"blob":"([0-9a-f]{64})"', 'g'))[1]
            FROM (
                -- As text whatever became of the bytes.
                SELECT encode(event.body, 'escape')
                FROM {schema}.events AS event
                WHERE event.journal = ANY (v_gone) AND position('\x22626c6f6222'::bytea IN event.body) > 0
                UNION ALL
                SELECT concat(message.payload, message.ended) FROM {schema}.inbox AS message WHERE message.journal = ANY (v_gone)
                UNION ALL
                SELECT seen.answer
                FROM {schema}.inbox_keys AS seen
                WHERE seen.journal = ANY (v_gone) AND seen.answer IS NOT NULL
                UNION ALL
                SELECT concat(item.result, item.failure) FROM {schema}.items AS item WHERE item.journal = ANY (v_gone)
                UNION ALL
                SELECT encode(chunk.body, 'escape')
                FROM {schema}.streams AS stream
                JOIN {schema}.stream_chunks AS chunk ON chunk.stream = stream.key
                WHERE stream.journal = ANY (v_gone)
            ) AS said (body)
        ));
    END IF;

    DELETE FROM {schema}.watches AS watch WHERE watch.watcher = ANY (v_ids);

    DELETE FROM {schema}.tags AS tag
    USING {schema}.runs AS run, json_each_text(run.tags::json) AS named
    WHERE
        (run.key = ANY (v_gone) OR (run.journal = ANY (v_gone) AND run.number > 0))
        AND run.tags IS NOT NULL
        AND md5(tag.name) = md5(named.key) AND md5(tag.value) = md5(named.value)
        AND tag.created_at = run.created_at AND tag.run_key = run.key;

    DELETE FROM {schema}.stream_chunks AS chunk
    USING {schema}.streams AS stream
    WHERE stream.journal = ANY (v_gone) AND chunk.stream = stream.key;

    DELETE FROM {schema}.streams AS stream WHERE stream.journal = ANY (v_gone);
    DELETE FROM {schema}.items AS item WHERE item.journal = ANY (v_gone);
    DELETE FROM {schema}.inbox AS message WHERE message.journal = ANY (v_gone);
    DELETE FROM {schema}.inbox_keys AS seen WHERE seen.journal = ANY (v_gone);
    DELETE FROM {schema}.events AS event WHERE event.journal = ANY (v_gone);
    DELETE FROM {schema}.runs AS child WHERE child.journal = ANY (v_gone) AND child.number > 0;
    DELETE FROM {schema}.runs AS root WHERE root.key = ANY (v_gone);
    RETURN v_gone;
END
$body$;
