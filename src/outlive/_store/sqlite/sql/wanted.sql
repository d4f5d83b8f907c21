-- What every list filters by; included in list_*.sql.
(:before IS NULL OR (run.created_at, run.id) < (:before, :before_id))
AND (:statuses IS NULL OR run.status IN (SELECT value FROM json_each(:statuses)))
AND (:workflow IS NULL OR run.workflow = :workflow)
AND (:root_id IS NULL OR run.root_id = :root_id)
AND (:parent_id IS NULL OR run.parent_id = :parent_id)
AND (:owner IS NULL OR run.owner = :owner)
AND (NOT :roots_only OR run.number = 0)
AND (:tags IS NULL OR NOT EXISTS (
    SELECT 1
    FROM json_each(:tags) AS wish
    WHERE NOT EXISTS (
        SELECT 1 FROM json_each(run.tags) AS tag WHERE tag.key = wish.key AND tag.value = wish.value
    )
))
