-- The runs that one run started.
outlive_runs AS run INDEXED BY outlive_runs_parent_id_created_at
WHERE run.parent_id = :parent_id AND run.created_at BETWEEN :low AND :high
