-- Runs that wait for an ask are found by its name too.
DROP TRIGGER waits_inserted ON runs;

DROP TRIGGER waits_updated ON runs;

DROP TRIGGER waits_deleted ON runs;

-- The names in the column `waits`; none if it is damaged.
CREATE OR REPLACE FUNCTION wait_names(p_waits text) RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE AS $body$
BEGIN
    RETURN QUERY
    SELECT wait.value ->> 'name'
    FROM json_array_elements(p_waits::json) AS wait
    WHERE wait.value ->> 'kind' IN ('signal', 'approval', 'child', 'ask') AND wait.value ->> 'name' IS NOT NULL;
EXCEPTION WHEN data_exception THEN
    RETURN;
END
$body$;

CREATE TRIGGER waits_inserted AFTER INSERT ON runs
FOR EACH ROW WHEN (NEW.waits ~ '"(signal|approval|child|ask)"' OR NEW.approvals IS NOT NULL)
EXECUTE FUNCTION index_waits_and_approvals();

CREATE TRIGGER waits_updated AFTER UPDATE OF waits, approvals ON runs
FOR EACH ROW WHEN (
    OLD.approvals IS DISTINCT FROM NEW.approvals
    OR (
        OLD.waits IS DISTINCT FROM NEW.waits
        AND (OLD.waits ~ '"(signal|approval|child|ask)"' OR NEW.waits ~ '"(signal|approval|child|ask)"')
    )
)
EXECUTE FUNCTION index_waits_and_approvals();

CREATE TRIGGER waits_deleted AFTER DELETE ON runs
FOR EACH ROW WHEN (OLD.waits ~ '"(signal|approval|child|ask)"' OR OLD.approvals IS NOT NULL)
EXECUTE FUNCTION index_waits_and_approvals();

INSERT INTO waits (name, created_at, run_key)
SELECT DISTINCT names.name, run.created_at, run.key
FROM runs AS run CROSS JOIN wait_names(run.waits) AS names (name)
WHERE run.waits IS NOT NULL
ON CONFLICT DO NOTHING;
