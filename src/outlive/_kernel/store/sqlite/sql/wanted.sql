-- What every list filters by; included in list_runs.sql and its kin. The conditions of filter.sql come first.
{filter}
AND (:before IS NULL OR (run.created_at, run.id) < (:before, :before_id))
AND (:after IS NULL OR (run.created_at, run.id) > (:after, :after_id))
AND (
    :statuses IS NULL OR run.status IN (SELECT value FROM json_each(:statuses))
    OR (run.status NOT IN {stored} AND 'damaged' IN (SELECT value FROM json_each(:statuses)))
)
AND (:ids IS NULL OR run.id IN (SELECT value FROM json_each(:ids)))
AND (:id_prefix IS NULL OR substr(run.id, 1, length(:id_prefix)) = :id_prefix)
AND (:error IS NULL OR run.error = :error OR substr(run.error, -length(:error) - 1) = '.' || :error)
AND (NOT :sleeps OR instr(run.waits, '"kind":"timer"') > 0)
-- In the tables and not in the row, whose JSON may be damaged: that would fail the whole list.
AND (:waiting_for IS NULL OR EXISTS (
    SELECT 1
    FROM outlive_waits AS wait
    WHERE wait.name = :waiting_for AND wait.created_at = run.created_at AND wait.run_key = run.key
))
AND (:tags IS NULL OR NOT EXISTS (
    SELECT 1
    FROM json_each(:tags) AS wanted
    WHERE NOT EXISTS (
        SELECT 1
        FROM outlive_tags AS tag
        WHERE
            tag.name = wanted.key AND tag.value = wanted.value
            AND tag.created_at = run.created_at AND tag.run_key = run.key
    )
))
