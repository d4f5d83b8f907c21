-- The class of a step's failure was renamed: rows have its name of then, and of now.
DROP INDEX outlive_runs_error_created_at;

ALTER TABLE outlive_runs DROP COLUMN error;

ALTER TABLE outlive_runs ADD COLUMN error TEXT GENERATED ALWAYS AS (
    CASE
        WHEN failure IS NULL OR NOT json_valid(failure) THEN NULL
        WHEN failure ->> '$.type' IN ('outlive.errors.StepFailedError', 'outlive.errors.StepFailed')
            THEN coalesce(failure ->> '$.attributes.type_name', failure ->> '$.type')
        ELSE failure ->> '$.type'
    END
) VIRTUAL;

CREATE INDEX outlive_runs_error_created_at ON outlive_runs (
    substr(error, length(rtrim(error, replace(error, '.', ''))) + 1), created_at, error
)
WHERE failure IS NOT NULL;
