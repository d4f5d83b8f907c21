-- Which of the tags in ?1, as [run key, created_at, name, value], can be found.
SELECT json_group_array(json_array(tag.run_key, tag.name))
FROM json_each(?1) AS wanted
CROSS JOIN outlive_tags AS tag
    ON tag.name = wanted.value ->> 2
    AND tag.value = wanted.value ->> 3
    AND tag.created_at = wanted.value ->> 1
    AND tag.run_key = wanted.value ->> 0
