-- The conditions of a filter that all databases spell alike; SQLite has them without the casts. The others are in
-- wanted.sql of each database.
run.created_at BETWEEN :low::bigint AND :high::bigint
AND (:workflow::text IS NULL OR run.workflow = :workflow::text)
AND (:version::bigint IS NULL OR run.version = :version::bigint)
AND (:finished_since_at::bigint IS NULL OR run.finished_at >= :finished_since_at::bigint)
AND (:finished_until_at::bigint IS NULL OR run.finished_at < :finished_until_at::bigint)
AND (:root_id::text IS NULL OR run.root_id = :root_id::text)
AND (:parent_id::text IS NULL OR run.parent_id = :parent_id::text)
AND (:owner::text IS NULL OR run.owner = :owner::text)
AND (NOT :roots_only::boolean OR run.number = 0)
AND (NOT :hides_internal::boolean OR NOT {internal_run})
AND (:queue::text IS NULL OR coalesce(run.queue, '') = :queue::text)
AND (:overdue_at::bigint IS NULL OR (run.begin_by < :overdue_at::bigint AND run.finished_at IS NULL))
