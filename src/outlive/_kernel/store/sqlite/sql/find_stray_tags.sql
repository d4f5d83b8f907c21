-- Tags by which a run is found that it does not have; at most ?1.
SELECT tag.run_key, CAST(tag.name AS BLOB)
FROM outlive_tags AS tag
WHERE NOT EXISTS (
    SELECT 1
    FROM outlive_runs AS run, json_each(CASE WHEN json_valid(run.tags) THEN run.tags END) AS own
    WHERE run.key = tag.run_key AND own.key = tag.name AND own.value = tag.value AND run.created_at = tag.created_at
)
LIMIT ?1
