-- Tags by which a run could be found that is not there, or was made at another time; at most $1.
SELECT tag.run_key, tag.name
FROM {schema}.tags AS tag
LEFT JOIN {schema}.runs AS run ON run.key = tag.run_key AND run.created_at = tag.created_at
WHERE run.tags IS NULL OR strpos(run.tags, to_json(tag.name)::text || ':' || to_json(tag.value)::text) = 0
LIMIT $1
