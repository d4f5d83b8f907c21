-- The runs with the tag :tag_name = :tag_value; {wanted} sees to the other tags.
outlive_tags AS tagged
CROSS JOIN outlive_runs AS run ON run.key = tagged.run_key
WHERE tagged.name = :tag_name AND tagged.value = :tag_value AND tagged.created_at BETWEEN :low AND :high
