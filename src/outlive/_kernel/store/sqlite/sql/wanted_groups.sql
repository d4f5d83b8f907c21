-- Which groups a filter leaves; included in list_runs.sql and its kin.
(:workflow IS NULL OR groups.workflow = :workflow)
AND (
    :statuses IS NULL OR groups.status IN (SELECT value FROM json_each(:statuses))
    OR (groups.status NOT IN {stored} AND 'damaged' IN (SELECT value FROM json_each(:statuses)))
)
AND (NOT :roots_only OR NOT groups.is_child)
AND (NOT :hides_internal OR NOT {internal_group})
