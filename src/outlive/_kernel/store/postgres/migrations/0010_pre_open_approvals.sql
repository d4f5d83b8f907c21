-- What a run asks people for and has no decision on; NULL for nearly all. Rows that exist are not touched.
ALTER TABLE runs ADD COLUMN approvals text;

-- A run that asks is found in the table of waits, by '@approval', and by '@assignee/' and the name of each person; these
-- are the names. None if the column is damaged.
CREATE FUNCTION asked_names(p_approvals text) RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE AS $body$
BEGIN
    IF p_approvals IS NOT NULL THEN
        RETURN NEXT '@approval';
        RETURN QUERY
        SELECT '@assignee/' || person.value
        FROM
            json_array_elements(p_approvals::json) AS request,
            json_array_elements_text(request.value -> 'assignees') AS person;
    END IF;
EXCEPTION WHEN data_exception THEN
    RETURN;
END
$body$;

DROP TRIGGER waits_inserted ON runs;
DROP TRIGGER waits_updated ON runs;
DROP TRIGGER waits_deleted ON runs;
DROP FUNCTION index_waits;

CREATE FUNCTION index_waits_and_approvals() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $body$
BEGIN
    IF TG_OP <> 'INSERT' AND (OLD.waits IS NOT NULL OR OLD.approvals IS NOT NULL) THEN
        DELETE FROM waits WHERE run_key = OLD.key;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO waits (name, created_at, run_key)
        SELECT name, NEW.created_at, NEW.key FROM wait_names(NEW.waits) AS name
        UNION
        SELECT name, NEW.created_at, NEW.key FROM asked_names(NEW.approvals) AS name
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$body$;

CREATE TRIGGER waits_inserted AFTER INSERT ON runs
FOR EACH ROW WHEN (NEW.waits ~ '"(signal|approval|child)"' OR NEW.approvals IS NOT NULL)
EXECUTE FUNCTION index_waits_and_approvals();

CREATE TRIGGER waits_updated AFTER UPDATE OF waits, approvals ON runs
FOR EACH ROW WHEN (
    OLD.approvals IS DISTINCT FROM NEW.approvals
    OR (
        OLD.waits IS DISTINCT FROM NEW.waits
        AND (OLD.waits ~ '"(signal|approval|child)"' OR NEW.waits ~ '"(signal|approval|child)"')
    )
)
EXECUTE FUNCTION index_waits_and_approvals();

CREATE TRIGGER waits_deleted AFTER DELETE ON runs
FOR EACH ROW WHEN (OLD.waits ~ '"(signal|approval|child)"' OR OLD.approvals IS NOT NULL)
EXECUTE FUNCTION index_waits_and_approvals();
