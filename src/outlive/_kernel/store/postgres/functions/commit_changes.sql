-- Everything that a batch of changes writes, in one call; what a change conflicts with fails the whole of it.
--
-- Each part is a set of arrays of equal length, one per column, NULL when there is nothing of it. The parts are written
-- in an order that no two calls can wait for each other: roots by key, then new ids, then events by journal, then blobs.
-- Every statement in here sees what others have committed before it began: that is why roots are locked first.
--
-- `lost`: keys of new trees that do not exist because their id was taken, or because they wanted to begin at once in a
-- queue in which they may not (`eager`); nothing of them was written.
CREATE FUNCTION {commit_changes}(
    p_now bigint, -- NULL: the server's clock.
    p_channel text, -- Where to tell that something is due for others; NULL: nowhere.
    -- Events.
    p_event_journal bigint[],
    p_event_seq integer[],
    p_event_after integer[], -- The last event from before the call; -1 in a new journal.
    p_event_prior bigint[], -- Its checksum; NULL: whatever it is.
    p_event_format smallint[],
    p_event_crc bigint[],
    p_event_is_last boolean[],
    p_event_body bytea[],
    -- Root runs that exist: what a fold can change of them.
    p_root_key bigint[],
    {root_parameters},
    -- New roots, and children, new ones and others. A child has no key here: it gets one of its own.
    {run_parameters},
    -- Blobs, of changes (journal) and of messages (their number, from 1).
    p_blob_journal bigint[],
    p_blob_message integer[],
    p_blob_id text[],
    p_blob_data bytea[],
    -- What is rare: {must, guarded, tagged, retagged, requeued, consumed, keys, answers, items, streams, renames, successors, messages,
    -- messages_max, forgets, rings, rings_channel, lined, freed, eager, audit}.
    p_rest jsonb,
    OUT lost bigint[],
    OUT deliveries text[]
) LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
AS $body$
DECLARE
    v_now bigint := {instant}(p_now);
    v_found bigint[];
    v_locked bigint[] := '{}';
    v_count bigint;
    v_is_due boolean := false;
    v_is_new_due boolean;
    v_has_rest boolean := p_rest IS NOT NULL;
    v_has_end boolean := coalesce(p_root_status && {final}, false);
    v_ends jsonb;
    v_cells text[];
    v_shared text[];
    v_waiting bigint[];
    v_follow_key bigint;
BEGIN
    IF v_has_rest AND p_rest ? 'eager' THEN
        -- New runs that want to begin at once. The cells of their queues stay locked: who limits or pauses a queue does so
        -- before such a run begins, or when it is there to be counted. Where another one has the lock, the run has to wait,
        -- and not the rest of this call.
        v_cells := ARRAY(SELECT DISTINCT value ->> 'cell' FROM jsonb_array_elements(p_rest -> 'eager'));
        v_shared := ARRAY(SELECT name FROM {schema}.cells WHERE name = ANY (v_cells) FOR SHARE SKIP LOCKED);
        IF cardinality(v_shared) < cardinality(v_cells) THEN
            WITH created AS (
                INSERT INTO {schema}.cells (name)
                SELECT new.name FROM unnest(v_cells) AS new (name) WHERE new.name <> ALL (v_shared) ORDER BY new.name
                ON CONFLICT (name) DO NOTHING
                RETURNING name
            )
            SELECT v_shared || array_agg(created.name) INTO v_shared FROM created;
        END IF;
        SELECT array_agg(new.journal)
        INTO v_waiting
        FROM jsonb_to_recordset(p_rest -> 'eager') AS new (
            journal bigint, cell text, queue text, is_behind boolean
        )
        WHERE
            new.is_behind
            OR NOT EXISTS (
                SELECT FROM {schema}.cells AS cell
                WHERE
                    cell.name = new.cell AND cell.name = ANY (v_shared)
                    AND (cell.data IS NULL OR {is_open}(cell.data))
            )
            OR EXISTS (SELECT FROM {schema}.lines AS line WHERE line.queue = new.queue);
    END IF;
    IF (v_has_rest AND p_rest ?| '{messages,renames,successors}') OR (v_has_end AND EXISTS (
        SELECT
        FROM {schema}.runs AS run
        JOIN {schema}.watches AS watch ON watch.run_id = run.id
        WHERE run.key = ANY (p_root_key)
    )) THEN
        -- All trees that this call touches are locked together: one after the other would be in another order than that
        -- of a call which goes the other way. A run that we wait for may give its id to another one meanwhile; then that
        -- one is locked too.
        LOOP
            SELECT array_agg(DISTINCT tree.key)
            INTO v_found
            FROM (
                SELECT unnest(p_root_key)
                UNION ALL
                SELECT value::bigint FROM jsonb_array_elements(p_rest -> 'guarded')
                UNION ALL
                SELECT (value ->> 'journal')::bigint FROM jsonb_array_elements(p_rest -> 'renames')
                UNION ALL
                SELECT (value ->> 'successor_of')::bigint FROM jsonb_array_elements(p_rest -> 'successors')
                UNION ALL
                SELECT run.journal
                FROM {schema}.runs AS run
                WHERE run.id IN (SELECT value ->> 'run_id' FROM jsonb_array_elements(p_rest -> 'messages'))
                UNION ALL
                SELECT watcher.journal
                FROM unnest(p_root_key, p_root_status) AS new (key, status)
                JOIN {schema}.runs AS run ON run.key = new.key
                JOIN {schema}.watches AS watch ON watch.run_id = run.id
                JOIN {schema}.runs AS watcher ON watcher.id = watch.watcher
                WHERE new.status = ANY ({final})
            ) AS tree (key);
            EXIT WHEN v_found IS NULL OR v_found <@ v_locked;
            PERFORM FROM {schema}.runs WHERE key = ANY (v_found) ORDER BY key FOR NO KEY UPDATE;
            v_locked := v_locked || v_found;
        END LOOP;
    ELSIF v_has_rest AND p_rest ? 'guarded' THEN
        -- Journals that forget. Where others have written and forgotten, while we look, what would stand in our way, the
        -- fence below would let us pass: so no call looks before those that came first are done.
        PERFORM FROM {schema}.runs
        WHERE key = ANY (p_root_key || ARRAY(SELECT value::bigint FROM jsonb_array_elements(p_rest -> 'guarded')))
        ORDER BY key
        FOR NO KEY UPDATE;
    ELSIF p_root_key IS NOT NULL THEN
        PERFORM FROM {schema}.runs WHERE key = ANY (p_root_key) ORDER BY key FOR NO KEY UPDATE;
    END IF;
    IF v_has_rest AND p_rest ? 'consumed' THEN
        -- Messages that became facts; a tree can consume only its own.
        DELETE FROM {schema}.inbox AS message
        USING jsonb_to_recordset(p_rest -> 'consumed') AS done (id bigint, journal bigint)
        WHERE message.id = done.id AND message.journal = done.journal;
    END IF;
    IF v_has_rest AND p_rest ? 'forgets' THEN
        -- Messages for children that have ended and go. The other things go last, but this must not wake their root below.
        DELETE FROM {schema}.inbox AS message
        USING jsonb_to_recordset(p_rest -> 'forgets') AS gone (journal bigint, below integer)
        WHERE message.journal = gone.journal AND message.run > 0 AND message.run < gone.below;
    END IF;

    IF p_root_key IS NOT NULL THEN
        UPDATE {schema}.runs AS root
        SET
            {root_set},
            -- Messages that came while the writer released the tree.
            wake_at = CASE
                WHEN
                    (new.wake_at IS NULL OR (new.wake_at > v_now AND (new.status <> 'pending' OR new.epoch > 0)))
                    AND new.status IN {alive}
                    AND EXISTS (
                        SELECT FROM {schema}.inbox AS message
                        WHERE message.journal = new.key AND (new.status <> 'parked' OR message.kind = 'resume')
                    )
                    THEN v_now
                ELSE new.wake_at
            END
        FROM unnest(p_root_key, {root_arrays}) AS new (key, {state_names})
        WHERE root.key = new.key;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        IF v_count <> cardinality(p_root_key) THEN
            RAISE EXCEPTION USING ERRCODE = '{conflict}', MESSAGE = 'a root run is gone';
        END IF;
        IF v_has_end THEN
            -- Before the renames: a watch names a run by its id.
            v_ends := {take_watches}(p_root_key, v_now);
        END IF;
        -- An owned run is its owner's to look after; one that is released may be due for others.
        IF p_channel IS NOT NULL AND '' = ANY (p_root_owner) THEN
            v_is_due := EXISTS (
                SELECT FROM {schema}.runs
                WHERE key = ANY (p_root_key) AND owner = '' AND wake_at <= v_now AND status IN {alive}
            );
        END IF;
    END IF;

    -- Children of trees that exist come before the renames, which may be of them; those of new trees after their roots.
    IF p_run_key IS NOT NULL THEN
        IF EXISTS (SELECT FROM {schema}.requests WHERE run_id = ANY (p_run_id)) THEN
            RAISE EXCEPTION USING ERRCODE = '{conflict}', MESSAGE = 'a start with this id was requested before';
        END IF;
        PERFORM {put_children}({run_arrays}, NULL, false);
    END IF;
    IF v_has_rest AND p_rest ? 'renames' THEN
        -- Runs of ended trees make room for their successors; a run of any other tree stays as it is.
        UPDATE {schema}.runs AS run
        SET id = new.id, root_id = new.root_id, parent_id = new.parent_id
        FROM
            jsonb_to_recordset(p_rest -> 'renames') AS new (
                journal bigint, number integer, id text, root_id text, parent_id text
            )
        WHERE
            ((run.key = new.journal AND run.number = 0 AND new.number = 0)
            OR (run.journal = new.journal AND run.number = new.number AND run.number > 0))
            AND (SELECT root.status IN {ended} FROM {schema}.runs AS root WHERE root.key = new.journal);
    END IF;

    IF p_run_key IS NOT NULL THEN
        WITH created AS (
            INSERT INTO {schema}.runs ({run_names})
            SELECT {new_run}
            FROM unnest({run_arrays}) AS new ({run_names})
            WHERE new.number = 0 AND (v_waiting IS NULL OR new.key <> ALL (v_waiting))
            ORDER BY new.id
            ON CONFLICT (id) DO NOTHING
            RETURNING key, owner
        )
        SELECT array_agg(created.key), coalesce(bool_or(created.owner = ''), false)
        INTO v_found, v_is_new_due
        FROM created;
        -- Counted first: comparing them is only needed when an id was taken.
        IF coalesce(cardinality(v_found), 0) < cardinality(array_remove(p_run_key, NULL)) THEN
            SELECT array_agg(wanted.key)
            INTO lost
            FROM unnest(p_run_key) AS wanted (key)
            WHERE wanted.key IS NOT NULL AND wanted.key <> ALL (coalesce(v_found, '{}'));
        END IF;
        v_is_due := v_is_due OR v_is_new_due;
        -- A tree that brings more than itself takes all of that along when its id is taken: the careful way has to look.
        IF lost IS NOT NULL AND v_has_rest AND p_rest ? 'must' AND EXISTS (
            SELECT FROM jsonb_array_elements(p_rest -> 'must') WHERE value::bigint = ANY (lost)
        ) THEN
            RAISE EXCEPTION USING ERRCODE = '{conflict}', MESSAGE = 'an id is taken';
        END IF;
        PERFORM {put_children}({run_arrays}, lost, true);
    END IF;

    -- The fence. `format` comes through the event that the change builds on. If that event does not exist, has another
    -- checksum than `prior`, or ended its tree, `format` is NULL and the call fails as a whole; so it does when `seq` is taken already.
    INSERT INTO {schema}.events (journal, crc, seq, format, is_last, body)
    SELECT
        new.journal,
        new.crc,
        new.seq,
        CASE
            WHEN new.after < 0 THEN new.format
            ELSE (
                SELECT new.format
                FROM {schema}.events AS prior
                WHERE prior.journal = new.journal AND prior.seq = new.after AND NOT prior.is_last
                    AND prior.crc = new.prior
            )
        END,
        new.is_last,
        new.body
    FROM unnest(
        p_event_journal, p_event_seq, p_event_after, p_event_prior, p_event_format, p_event_crc, p_event_is_last,
        p_event_body
    ) AS new (journal, seq, after, prior, format, crc, is_last, body)
    WHERE lost IS NULL OR new.journal <> ALL (lost)
    ORDER BY new.journal, new.seq;

    IF p_blob_journal IS NOT NULL THEN
        PERFORM {remember_blobs}(v_now, p_blob_id);
        -- Equal content is stored once.
        INSERT INTO {schema}.blobs (id, data, kept_at)
        SELECT new.id, new.data, v_now
        FROM unnest(p_blob_journal, p_blob_message, p_blob_id, p_blob_data) AS new (journal, message, id, data)
        WHERE new.message IS NULL AND (lost IS NULL OR new.journal <> ALL (lost))
        ORDER BY new.id
        ON CONFLICT (id) DO NOTHING;
    END IF;

    IF v_has_rest THEN
        IF p_rest ? 'retagged' THEN
            -- Runs that have other tags than before: they are no longer found by those.
            DELETE FROM {schema}.tags AS tag
            USING
                jsonb_to_recordset(p_rest -> 'retagged') AS new (journal bigint, number integer),
                {schema}.runs AS run,
                json_each_text(run.tags::json) AS named
            WHERE
                ((run.key = new.journal AND run.number = 0 AND new.number = 0)
                OR (run.journal = new.journal AND run.number = new.number AND run.number > 0))
                AND run.tags IS NOT NULL
                AND md5(tag.name) = md5(named.key) AND md5(tag.value) = md5(named.value)
                AND tag.created_at = run.created_at AND tag.run_key = run.key;
            UPDATE {schema}.runs AS run
            SET tags = new.tags
            FROM jsonb_to_recordset(p_rest -> 'retagged') AS new (journal bigint, number integer, tags text)
            WHERE
                (run.key = new.journal AND run.number = 0 AND new.number = 0)
                OR (run.journal = new.journal AND run.number = new.number AND run.number > 0);
        END IF;
        IF p_rest ? 'requeued' THEN
            UPDATE {schema}.runs AS run
            SET queue = new.queue, queue_key = new.queue_key, lead = new.lead
            FROM jsonb_to_recordset(p_rest -> 'requeued') AS new (
                journal bigint, queue text, queue_key text, lead bigint
            )
            WHERE run.key = new.journal;
        END IF;
        IF p_rest ? 'tagged' THEN
            -- Make runs findable by their tags. Not by id: it may have been another one a moment ago.
            INSERT INTO {schema}.tags (name, value, created_at, run_key)
            SELECT tag.key, tag.value, run.created_at, run.key
            FROM jsonb_to_recordset(p_rest -> 'tagged') AS new (journal bigint, number integer)
            JOIN {schema}.runs AS run ON run.key = CASE
                WHEN new.number = 0 THEN new.journal
                ELSE (
                    SELECT child.key
                    FROM {schema}.runs AS child
                    WHERE child.journal = new.journal AND child.number = new.number AND child.number > 0
                )
            END
            CROSS JOIN json_each_text(run.tags::json) AS tag
            WHERE run.tags IS NOT NULL
            ON CONFLICT DO NOTHING;
        END IF;
        IF p_rest ? 'items' THEN
            -- Recorded once, never changed.
            INSERT INTO {schema}.items (journal, run, index, result, failure)
            SELECT new.journal, new.run, new.index, new.result, new.failure
            FROM
                jsonb_to_recordset(p_rest -> 'items') AS new (
                    journal bigint, run integer, index integer, result text, failure text
                )
            ON CONFLICT DO NOTHING;
        END IF;
        IF p_rest ? 'streams' THEN
            PERFORM {append_streams}(p_rest -> 'streams', NULL, NULL);
        END IF;
        IF p_rest ? 'keys' THEN
            INSERT INTO {schema}.inbox_keys (journal, key)
            SELECT new.journal, new.key
            FROM jsonb_to_recordset(p_rest -> 'keys') AS new (journal bigint, key text);
        END IF;
        IF p_rest ? 'answers' THEN
            -- Written once, never changed; before a successor takes the keys over, and their answers with them.
            UPDATE {schema}.inbox_keys AS seen
            SET answer = new.answer
            FROM jsonb_to_recordset(p_rest -> 'answers') AS new (journal bigint, key text, answer text)
            WHERE seen.journal = new.journal AND md5(seen.key) = md5(new.key) AND seen.answer IS NULL;
        END IF;
        IF p_rest ? 'successors' THEN
            UPDATE {schema}.streams AS stream
            SET journal = successor.journal, items = 0, bytes = 0, mark = 0, number = 0
            FROM jsonb_to_recordset(p_rest -> 'successors') AS successor (journal bigint, successor_of bigint, lives_on boolean)
            JOIN {schema}.runs AS ancestor ON ancestor.key = successor.successor_of
            WHERE stream.journal = successor.successor_of AND stream.run = 0 AND ancestor.status IN {ended}
                AND NOT successor.lives_on;
            -- A new tree takes over the keys, and the messages to the root, of the ended one that it goes on for; one that
            -- lives on under its id takes those of signals and asks, unless an ask was taken and never answered.
            UPDATE {schema}.inbox AS message
            SET journal = successor.journal
            FROM jsonb_to_recordset(p_rest -> 'successors') AS successor (journal bigint, successor_of bigint, lives_on boolean)
            JOIN {schema}.runs AS ancestor ON ancestor.key = successor.successor_of
            WHERE message.journal = successor.successor_of AND message.run = 0 AND ancestor.status IN {ended}
                AND (NOT successor.lives_on OR message.kind IN ('signal', 'ask'));
            UPDATE {schema}.inbox_keys AS seen
            SET journal = successor.journal
            FROM jsonb_to_recordset(p_rest -> 'successors') AS successor (journal bigint, successor_of bigint, lives_on boolean)
            JOIN {schema}.runs AS ancestor ON ancestor.key = successor.successor_of
            WHERE seen.journal = successor.successor_of AND ancestor.status IN {ended}
                AND (
                    NOT successor.lives_on
                    OR seen.key NOT LIKE '@%'
                    OR (
                        seen.key LIKE '@ask/%'
                        AND (
                            seen.answer IS NOT NULL
                            OR EXISTS (
                                SELECT FROM {schema}.inbox AS waiting
                                WHERE waiting.journal = successor.journal AND waiting.key = seen.key
                            )
                        )
                    )
                );
            PERFORM {wake_for_inbox}(v_now, (
                SELECT array_agg((value ->> 'journal')::bigint) FROM jsonb_array_elements(p_rest -> 'successors')
            ));
        END IF;
        IF p_rest ? 'messages' THEN
            deliveries := {put_messages}(
                v_now, p_rest -> 'messages', (p_rest ->> 'messages_max')::bigint, p_blob_message, p_blob_id, p_blob_data
            );
            v_is_due := v_is_due OR 'accepted' = ANY (deliveries);
        END IF;
        IF p_rest ? 'forgets' THEN
            PERFORM {forget}(p_rest -> 'forgets');
        END IF;
        IF p_rest ? 'lined' THEN
            PERFORM {put_lines}(
                ARRAY(SELECT value ->> 0 FROM jsonb_array_elements(p_rest -> 'lined')),
                ARRAY(SELECT value ->> 1 FROM jsonb_array_elements(p_rest -> 'lined')),
                ARRAY(SELECT value ->> 2 FROM jsonb_array_elements(p_rest -> 'lined'))
            );
        END IF;
        IF p_rest ? 'freed' AND NOT v_is_due THEN
            -- A slot of a queue that others wait for.
            v_is_due := EXISTS (
                SELECT FROM {schema}.lines
                WHERE queue = ANY (ARRAY(SELECT jsonb_array_elements_text(p_rest -> 'freed')))
            );
        END IF;
        IF p_rest ? 'rings' THEN
            -- A process that follows runs holds this lock, shared, with the connection that listens. If it can be had, none
            -- does, and nothing is said: commits that notify wait for each other on the whole server.
            v_follow_key := hashtextextended(p_rest ->> 'rings_channel', 0);
            IF pg_try_advisory_lock(v_follow_key) THEN
                PERFORM pg_advisory_unlock(v_follow_key);
            ELSE
                PERFORM pg_notify(p_rest ->> 'rings_channel', value) FROM jsonb_array_elements_text(p_rest -> 'rings');
            END IF;
        END IF;
    END IF;
    IF v_ends IS NOT NULL THEN
        PERFORM {put_messages}(v_now, v_ends, 4611686018427387904, NULL, NULL, NULL);
        v_is_due := true;
    END IF;
    IF v_has_rest AND p_rest ? 'audit' THEN
        -- Last: the end of the log stays locked from here on. Nothing of trees that do not exist.
        PERFORM {append_audit}(v_now, (
            SELECT jsonb_agg(value)
            FROM jsonb_array_elements(p_rest -> 'audit')
            WHERE lost IS NULL OR (value ->> 'journal')::bigint <> ALL (lost)
            HAVING count(*) > 0
        ));
    END IF;

    IF v_is_due AND p_channel IS NOT NULL THEN
        PERFORM pg_notify(p_channel, '');
    END IF;
END
$body$;
