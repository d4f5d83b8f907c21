-- What runs wait for, by the name of the signal, the approval or the other run: only runs that wait for one pay for it.
CREATE TABLE outlive_waits (
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    run_key INTEGER NOT NULL,
    PRIMARY KEY (name, created_at, run_key)
) STRICT, WITHOUT ROWID;

-- It is an index of the column `waits`, so the database keeps it, whatever statement and whatever release writes the
-- column. SQLite has no index with several entries for one row. Runs that only sleep or try again are known by
-- a look at the text: they need not pay for reading it.
CREATE TRIGGER outlive_runs_waits_inserted AFTER INSERT ON outlive_runs
WHEN NEW.waits LIKE '%"signal"%' OR NEW.waits LIKE '%"approval"%' OR NEW.waits LIKE '%"child"%'
BEGIN
    INSERT OR IGNORE INTO outlive_waits (name, created_at, run_key)
    SELECT json_extract(NEW.waits, wait.fullkey || '.name'), NEW.created_at, NEW.key
    FROM json_each(iif(json_valid(NEW.waits), NEW.waits, '[]')) AS wait
    WHERE json_extract(NEW.waits, wait.fullkey || '.kind') IN ('signal', 'approval', 'child');
END;

CREATE TRIGGER outlive_runs_waits_updated AFTER UPDATE OF waits ON outlive_runs
WHEN
    OLD.waits IS NOT NEW.waits
    AND (
        OLD.waits LIKE '%"signal"%' OR OLD.waits LIKE '%"approval"%' OR OLD.waits LIKE '%"child"%'
        OR NEW.waits LIKE '%"signal"%' OR NEW.waits LIKE '%"approval"%' OR NEW.waits LIKE '%"child"%'
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
    WHERE json_extract(NEW.waits, wait.fullkey || '.kind') IN ('signal', 'approval', 'child');
END;

CREATE TRIGGER outlive_runs_waits_deleted AFTER DELETE ON outlive_runs
WHEN OLD.waits LIKE '%"signal"%' OR OLD.waits LIKE '%"approval"%' OR OLD.waits LIKE '%"child"%'
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
WHERE run.waits IS NOT NULL AND json_extract(run.waits, wait.fullkey || '.kind') IN ('signal', 'approval', 'child');

-- What a run failed with: the type of its failure, or of the exception that the step raised whose failure it is.
ALTER TABLE outlive_runs ADD COLUMN error TEXT GENERATED ALWAYS AS (
    CASE
        WHEN failure IS NULL OR NOT json_valid(failure) THEN NULL
        WHEN failure ->> '$.type' = 'outlive.errors.StepFailed'
            THEN coalesce(failure ->> '$.attributes.type_name', failure ->> '$.type')
        ELSE failure ->> '$.type'
    END
) VIRTUAL;

-- By the name of the class, which is what stands behind the last dot; with the module, so that a count needs no row.
CREATE INDEX outlive_runs_error_created_at ON outlive_runs (
    substr(error, length(rtrim(error, replace(error, '.', ''))) + 1), created_at, error
)
WHERE failure IS NOT NULL;
