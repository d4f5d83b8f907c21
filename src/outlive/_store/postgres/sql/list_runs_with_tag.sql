-- The newest runs with the tag $11 = $12; {wanted} sees to the other tags.
SELECT {run_columns}
FROM {schema}.tags AS tagged
JOIN {schema}.runs AS run ON run.key = tagged.run_key
WHERE
    md5(tagged.name) = md5($11::text) AND md5(tagged.value) = md5($12::text)
    AND tagged.name = $11::text AND tagged.value = $12::text
    AND {wanted}
ORDER BY tagged.created_at DESC, run.id DESC
LIMIT $3
