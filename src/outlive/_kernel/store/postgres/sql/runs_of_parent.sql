-- The runs that one run started.
{schema}.runs AS run
WHERE run.parent_id = :parent_id::text AND run.created_at BETWEEN :low::bigint AND :high::bigint
