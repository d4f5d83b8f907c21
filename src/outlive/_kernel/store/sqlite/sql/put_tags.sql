-- Make the runs with these ids findable by their tags.
INSERT OR IGNORE INTO outlive_tags (name, value, created_at, run_key)
SELECT tag.key, tag.value, outlive_runs.created_at, outlive_runs.key
FROM outlive_runs, json_each(outlive_runs.tags) AS tag
WHERE outlive_runs.id IN (SELECT value FROM json_each(?1)) AND outlive_runs.tags IS NOT NULL
