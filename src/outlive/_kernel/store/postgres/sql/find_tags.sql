-- Which of these tags can be found.
SELECT tag.run_key, tag.name
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS wanted (run_key, created_at, name, value)
JOIN {schema}.tags AS tag
    ON md5(tag.name) = md5(wanted.name)
    AND md5(tag.value) = md5(wanted.value)
    AND tag.created_at = wanted.created_at
    AND tag.run_key = wanted.run_key
