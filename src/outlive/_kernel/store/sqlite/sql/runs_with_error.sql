-- The runs that failed with an exception of this name; {wanted} compares the module too.
outlive_runs AS run INDEXED BY outlive_runs_error_created_at
WHERE
    run.failure IS NOT NULL
    AND substr(run.error, length(rtrim(run.error, replace(run.error, '.', ''))) + 1) = :error_name
    AND run.created_at BETWEEN :low AND :high
