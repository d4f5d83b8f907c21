-- The runs with the tag :tag_name = :tag_value; {wanted} sees to the other tags.
outlive_tags AS entry
{row}
WHERE entry.name = :tag_name AND entry.value = :tag_value AND entry.created_at BETWEEN :low AND :high
