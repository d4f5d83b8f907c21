-- Append lines to streams; for each append, in order, what became of it. (`grow` in outlive/_kernel/store/streams.py does the
-- same for other stores.)
--
-- Streams are locked in the order of their names, so that no two calls wait for each other. The epoch is looked at when
-- the stream is locked: who finds its own epoch there comes before the claim that ends it, and so before everything
-- that the next owner appends.
CREATE FUNCTION {append_streams}(
    p_appends jsonb, -- [{journal, run, name, lines: [{head, body, count, size, number}], and from a step: epoch, mark}]
    p_limits bigint[], -- Streams, items and bytes that a run may have; NULL: any number.
    p_channel text -- Where those listen who follow the trees; NULL: nowhere.
) RETURNS text[] LANGUAGE plpgsql VOLATILE AS $body$
DECLARE
    v_answers text[] := array_fill('appended'::text, ARRAY[jsonb_array_length(p_appends)]);
    v_append record;
    v_line record;
    v_stream record;
    v_run record;
    v_body bytea;
    v_grown bigint[] := '{}';
BEGIN
    FOR v_append IN
        SELECT
            (value ->> 'journal')::bigint AS journal,
            (value ->> 'run')::integer AS run,
            value ->> 'name' AS name,
            (value ->> 'epoch')::bigint AS epoch,
            coalesce((value ->> 'mark')::bigint, 0) AS mark,
            value -> 'lines' AS lines,
            ordinality AS place
        FROM jsonb_array_elements(p_appends) WITH ORDINALITY
        ORDER BY 1, 2, (value ->> 'name') COLLATE "C", ordinality
    LOOP
        IF v_append.epoch IS NOT NULL AND NOT EXISTS (
            SELECT FROM {schema}.runs WHERE key = v_append.journal AND epoch = v_append.epoch AND status IN {alive}
        ) THEN
            v_answers[v_append.place] := 'lost';
            CONTINUE;
        END IF;
        LOOP
            SELECT * INTO v_stream
            FROM {schema}.streams
            WHERE journal = v_append.journal AND run = v_append.run AND name = v_append.name
            FOR UPDATE;
            EXIT WHEN FOUND;
            INSERT INTO {schema}.streams (journal, run, name)
            VALUES (v_append.journal, v_append.run, v_append.name)
            ON CONFLICT (journal, run, name) DO NOTHING;
        END LOOP;
        IF v_append.epoch IS NOT NULL AND NOT EXISTS (
            SELECT FROM {schema}.runs WHERE key = v_append.journal AND epoch = v_append.epoch AND status IN {alive}
        ) THEN
            v_answers[v_append.place] := 'lost';
            CONTINUE;
        END IF;
        CONTINUE WHEN v_append.mark <> 0 AND v_append.mark >> {mark_bits} = v_stream.mark >> {mark_bits}
            AND v_append.mark <= v_stream.mark;
        IF p_limits IS NOT NULL THEN
            SELECT
                count(*) AS streams,
                sum(items) + (SELECT sum((value ->> 'count')::bigint) FROM jsonb_array_elements(v_append.lines)) AS items,
                sum(bytes) + (SELECT sum((value ->> 'size')::bigint) FROM jsonb_array_elements(v_append.lines)) AS bytes
            INTO v_run
            FROM {schema}.streams
            WHERE journal = v_append.journal AND run = v_append.run;
            IF v_run.streams > p_limits[1] OR v_run.items > p_limits[2] OR v_run.bytes > p_limits[3] THEN
                v_answers[v_append.place] := 'full';
                -- One that has never held anything would count as one of its run's.
                DELETE FROM {schema}.streams WHERE key = v_stream.key AND v_stream.position = 0;
                CONTINUE;
            END IF;
        END IF;
        FOR v_line IN
            SELECT new.head, new.body, new.count, new.size, coalesce(new.number, 0) AS number
            FROM jsonb_to_recordset(v_append.lines) AS new (head text, body text, count integer, size bigint, number bigint)
        LOOP
            CONTINUE WHEN v_line.number <> 0 AND v_line.number <= v_stream.number;
            v_body := convert_to(v_line.body, 'UTF8');
            IF v_line.head <> v_stream.head THEN
                v_body := convert_to(v_line.head, 'UTF8') || v_body;
            END IF;
            IF v_stream.tail > 0 AND v_stream.tail_bytes + octet_length(v_body) <= {chunk_bytes_max} THEN
                UPDATE {schema}.stream_chunks
                SET count = count + v_line.count, body = body || v_body
                WHERE stream = v_stream.key AND first = v_stream.tail;
                v_stream.tail_bytes := v_stream.tail_bytes + octet_length(v_body);
            ELSE
                v_body := convert_to(v_line.head || v_line.body, 'UTF8');
                v_stream.tail := v_stream.position + 1;
                v_stream.tail_bytes := octet_length(v_body);
                INSERT INTO {schema}.stream_chunks (stream, first, count, body)
                VALUES (v_stream.key, v_stream.tail, v_line.count, v_body);
            END IF;
            v_stream.position := v_stream.position + v_line.count;
            v_stream.items := v_stream.items + v_line.count;
            v_stream.bytes := v_stream.bytes + v_line.size;
            v_stream.number := greatest(v_stream.number, v_line.number);
            v_stream.head := v_line.head;
        END LOOP;
        UPDATE {schema}.streams
        SET
            position = v_stream.position,
            items = v_stream.items,
            bytes = v_stream.bytes,
            mark = CASE WHEN v_append.mark = 0 THEN mark ELSE v_append.mark END,
            number = v_stream.number,
            tail = v_stream.tail,
            tail_bytes = v_stream.tail_bytes,
            head = v_stream.head
        WHERE key = v_stream.key;
        v_grown := v_grown || v_append.journal;
    END LOOP;
    IF p_channel IS NOT NULL THEN
        PERFORM pg_notify(p_channel, root.id) FROM {schema}.runs AS root WHERE root.key = ANY (v_grown);
    END IF;
    RETURN v_answers;
END
$body$;
