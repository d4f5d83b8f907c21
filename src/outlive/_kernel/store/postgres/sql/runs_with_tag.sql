-- The runs with the tag :tag_name = :tag_value; {wanted} sees to the other tags.
{schema}.tags AS entry
{row}
WHERE
    md5(entry.name) = md5(:tag_name::text) AND md5(entry.value) = md5(:tag_value::text)
    AND entry.name = :tag_name::text AND entry.value = :tag_value::text
    AND entry.created_at BETWEEN :low::bigint AND :high::bigint
