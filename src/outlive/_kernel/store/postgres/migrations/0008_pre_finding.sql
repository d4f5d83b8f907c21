-- What runs wait for, by the name of the signal, the approval or the other run: only runs that wait for one pay for it.
CREATE TABLE waits (
    name text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    run_key bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- A name may be longer than an index entry can be: it is found by its hash, and then looked at.
CREATE UNIQUE INDEX waits_name_created_at ON waits (md5(name), created_at, run_key);

CREATE INDEX waits_run_key ON waits (run_key);

-- The names in the column `waits`; none if it is damaged.
CREATE FUNCTION wait_names(p_waits text) RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE AS $body$
BEGIN
    RETURN QUERY
    SELECT wait.value ->> 'name'
    FROM json_array_elements(p_waits::json) AS wait
    WHERE wait.value ->> 'kind' IN ('signal', 'approval', 'child') AND wait.value ->> 'name' IS NOT NULL;
EXCEPTION WHEN data_exception THEN
    RETURN;
END
$body$;

-- The table is an index of the column, so the database keeps it, whatever statement and whatever release writes the
-- column. An index proper with several entries for one row has no order. Runs that only sleep or try again are known by a look
-- at the text: they need not pay for the function.
CREATE FUNCTION index_waits() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $body$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.waits IS NOT NULL THEN
        DELETE FROM waits WHERE run_key = OLD.key;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.waits IS NOT NULL THEN
        INSERT INTO waits (name, created_at, run_key)
        SELECT DISTINCT name, NEW.created_at, NEW.key FROM wait_names(NEW.waits) AS name
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$body$;

CREATE TRIGGER waits_inserted AFTER INSERT ON runs
FOR EACH ROW WHEN (NEW.waits ~ '"(signal|approval|child)"') EXECUTE FUNCTION index_waits();

CREATE TRIGGER waits_updated AFTER UPDATE OF waits ON runs
FOR EACH ROW WHEN (OLD.waits IS DISTINCT FROM NEW.waits AND (OLD.waits ~ '"(signal|approval|child)"' OR NEW.waits ~ '"(signal|approval|child)"')) EXECUTE FUNCTION index_waits();

CREATE TRIGGER waits_deleted AFTER DELETE ON runs
FOR EACH ROW WHEN (OLD.waits ~ '"(signal|approval|child)"') EXECUTE FUNCTION index_waits();

INSERT INTO waits (name, created_at, run_key)
SELECT DISTINCT names.name, run.created_at, run.key
FROM runs AS run CROSS JOIN wait_names(run.waits) AS names (name)
WHERE run.waits IS NOT NULL;

-- What a run failed with: the type of its failure, or of the exception that the step raised whose failure it is. Not
-- read as JSON, which may be damaged: the type comes first, and no quote stands in a string without a backslash.
CREATE FUNCTION error_in(p_failure text) RETURNS text LANGUAGE sql IMMUTABLE AS $body$
    SELECT coalesce(
        CASE
            WHEN p_failure LIKE '_"type":"outlive.errors.StepFailed"%'
                THEN nullif(split_part(split_part(p_failure, '"type_name":"', 2), '"', 1), '')
        END,
        split_part(p_failure, '"', 4)
    )
$body$;

-- By the name of the class, which is what stands behind the last dot.
CREATE INDEX runs_error_created_at ON runs (md5(reverse(split_part(reverse(error_in(failure)), '.', 1))), created_at, id)
WHERE failure IS NOT NULL;
