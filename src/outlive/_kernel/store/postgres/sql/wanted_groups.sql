-- Which groups a filter leaves; included in list_runs.sql and its kin.
(:workflow::text IS NULL OR groups.workflow = :workflow::text)
AND (
    :statuses::text[] IS NULL OR groups.status = ANY (:statuses::text[])
    OR (groups.status NOT IN {stored} AND 'damaged' = ANY (:statuses::text[]))
)
AND (NOT :roots_only::boolean OR NOT groups.is_child)
AND (NOT :hides_internal::boolean OR NOT {internal_group})
