-- Runs that wait for an ask are found by its name too.
DROP TRIGGER outlive_runs_waits_inserted;

DROP TRIGGER outlive_runs_waits_updated;

DROP TRIGGER outlive_runs_waits_deleted;

CREATE TRIGGER outlive_runs_waits_inserted AFTER INSERT ON outlive_runs
WHEN
    NEW.waits LIKE '%"signal"%' OR NEW.waits LIKE '%"approval"%' OR NEW.waits LIKE '%"child"%'
    OR NEW.waits LIKE '%"ask"%'
BEGIN
    INSERT OR IGNORE INTO outlive_waits (name, created_at, run_key)
    SELECT json_extract(NEW.waits, wait.fullkey || '.name'), NEW.created_at, NEW.key
    FROM json_each(iif(json_valid(NEW.waits), NEW.waits, '[]')) AS wait
    WHERE json_extract(NEW.waits, wait.fullkey || '.kind') IN ('signal', 'approval', 'child', 'ask');
END;

CREATE TRIGGER outlive_runs_waits_updated AFTER UPDATE OF waits ON outlive_runs
WHEN
    OLD.waits IS NOT NEW.waits
    AND (
        OLD.waits LIKE '%"signal"%' OR OLD.waits LIKE '%"approval"%' OR OLD.waits LIKE '%"child"%'
        OR OLD.waits LIKE '%"ask"%'
        OR NEW.waits LIKE '%"signal"%' OR NEW.waits LIKE '%"approval"%' OR NEW.waits LIKE '%"child"%'
        OR NEW.waits LIKE '%"ask"%'
    )
BEGIN
    DELETE FROM outlive_waits
    WHERE
        (name, created_at, run_key) IN (
            SELECT json_extract(OLD.waits, wait.fullkey || '.name'), OLD.created_at, OLD.key
            FROM json_each(iif(json_valid(OLD.waits), OLD.waits, '[]')) AS wait
        );
    INSERT OR IGNORE INTO outlive_waits (name, created_at, run_key)
    SELECT json_extract(NEW.waits, wait.fullkey || '.name'), NEW.created_at, NEW.key
    FROM json_each(iif(json_valid(NEW.waits), NEW.waits, '[]')) AS wait
    WHERE json_extract(NEW.waits, wait.fullkey || '.kind') IN ('signal', 'approval', 'child', 'ask');
END;

CREATE TRIGGER outlive_runs_waits_deleted AFTER DELETE ON outlive_runs
WHEN
    OLD.waits LIKE '%"signal"%' OR OLD.waits LIKE '%"approval"%' OR OLD.waits LIKE '%"child"%'
    OR OLD.waits LIKE '%"ask"%'
BEGIN
    DELETE FROM outlive_waits
    WHERE
        (name, created_at, run_key) IN (
            SELECT json_extract(OLD.waits, wait.fullkey || '.name'), OLD.created_at, OLD.key
            FROM json_each(iif(json_valid(OLD.waits), OLD.waits, '[]')) AS wait
        );
END;

INSERT OR IGNORE INTO outlive_waits (name, created_at, run_key)
SELECT json_extract(run.waits, wait.fullkey || '.name'), run.created_at, run.key
FROM outlive_runs AS run, json_each(iif(json_valid(run.waits), run.waits, '[]')) AS wait
WHERE run.waits IS NOT NULL AND json_extract(run.waits, wait.fullkey || '.kind') IN ('signal', 'approval', 'child', 'ask');
