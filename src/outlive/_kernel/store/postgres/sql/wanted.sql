-- What every list filters by; included in list_runs.sql and its kin. The conditions of filter.sql come first.
{filter}
AND (:before::bigint IS NULL OR (run.created_at, run.id) < (:before::bigint, :before_id::text COLLATE "C"))
AND (:after::bigint IS NULL OR (run.created_at, run.id) > (:after::bigint, :after_id::text COLLATE "C"))
AND (
    :statuses::text[] IS NULL OR run.status = ANY (:statuses::text[])
    OR (run.status NOT IN {stored} AND 'damaged' = ANY (:statuses::text[]))
)
AND (:ids::text[] IS NULL OR run.id = ANY (:ids::text[]))
AND (:id_prefix::text IS NULL OR starts_with(run.id, :id_prefix::text))
AND (
    :error::text IS NULL
    OR right('.' || {schema}.error_in(run.failure), length(:error::text) + 1) = '.' || :error::text
)
AND (NOT :sleeps::boolean OR run.waits LIKE '%"kind":"timer"%')
-- In the tables and not in the row, whose JSON may be damaged: that would fail the whole list.
AND (:waiting_for::text IS NULL OR EXISTS (
    SELECT FROM {schema}.waits AS wait
    WHERE
        md5(wait.name) = md5(:waiting_for::text)
        AND wait.created_at = run.created_at AND wait.run_key = run.key
        AND wait.name = :waiting_for::text
    OFFSET 0
))
AND (:tags::text IS NULL OR NOT EXISTS (
    SELECT FROM json_each_text(:tags::json) AS wanted
    WHERE NOT EXISTS (
        SELECT FROM {schema}.tags AS tag
        WHERE
            md5(tag.name) = md5(wanted.key) AND md5(tag.value) = md5(wanted.value)
            AND tag.created_at = run.created_at AND tag.run_key = run.key
            AND tag.name = wanted.key AND tag.value = wanted.value
        OFFSET 0  -- For each tag its index, with statistics and without.
    )
))
