-- The newest runs with the tag :tag_name = :tag_value; {wanted} sees to the other tags.
SELECT json_group_array(json_array(newest.created_at, newest.id, newest.key))
FROM (
    SELECT run.created_at, run.id, run.key
    FROM outlive_tags AS tagged
    CROSS JOIN outlive_runs AS run ON run.key = tagged.run_key
    WHERE tagged.name = :tag_name AND tagged.value = :tag_value AND {wanted}
    ORDER BY tagged.created_at DESC, run.id DESC
    LIMIT :limit
) AS newest
