-- Events that a snapshot stands for, and the child runs that ended before it.
CREATE FUNCTION {forget}(p_forgets jsonb) RETURNS void LANGUAGE sql VOLATILE AS $body$
    DELETE FROM {schema}.events AS event
    USING jsonb_to_recordset(p_forgets) AS gone (journal bigint, before integer)
    WHERE event.journal = gone.journal AND event.seq < gone.before;

    DELETE FROM {schema}.items AS item
    USING jsonb_to_recordset(p_forgets) AS gone (journal bigint, below integer)
    WHERE item.journal = gone.journal AND item.run > 0 AND item.run < gone.below;

    DELETE FROM {schema}.stream_chunks AS chunk
    USING jsonb_to_recordset(p_forgets) AS gone (journal bigint, below integer), {schema}.streams AS stream
    WHERE
        stream.journal = gone.journal AND stream.run > 0 AND stream.run < gone.below AND chunk.stream = stream.key;

    DELETE FROM {schema}.streams AS stream
    USING jsonb_to_recordset(p_forgets) AS gone (journal bigint, below integer)
    WHERE stream.journal = gone.journal AND stream.run > 0 AND stream.run < gone.below;

    DELETE FROM {schema}.tags AS tag
    USING
        jsonb_to_recordset(p_forgets) AS gone (journal bigint, below integer),
        {schema}.runs AS child,
        json_each_text(child.tags::json) AS named
    WHERE
        child.journal = gone.journal
        AND child.number > 0
        AND child.number < gone.below
        AND child.tags IS NOT NULL
        AND (tag.name, tag.value, tag.created_at, tag.run_key) = (named.key, named.value, child.created_at, child.key);

    DELETE FROM {schema}.runs AS child
    USING jsonb_to_recordset(p_forgets) AS gone (journal bigint, below integer)
    WHERE child.journal = gone.journal AND child.number > 0 AND child.number < gone.below
$body$;
