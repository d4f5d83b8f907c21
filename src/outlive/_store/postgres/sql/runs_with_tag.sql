-- The runs with the tag :tag_name = :tag_value; {wanted} sees to the other tags.
{schema}.tags AS tagged
JOIN {schema}.runs AS run ON run.key = tagged.run_key
WHERE
    md5(tagged.name) = md5(:tag_name::text) AND md5(tagged.value) = md5(:tag_value::text)
    AND tagged.name = :tag_name::text AND tagged.value = :tag_value::text
    AND tagged.created_at BETWEEN :low::bigint AND :high::bigint
