-- The runs that failed with an exception of this name; {wanted} compares the module too.
{schema}.runs AS run
WHERE
    run.failure IS NOT NULL
    AND md5(substring({schema}.error_in(run.failure) FROM '[^.]*$')) = md5(:error_name::text)
    AND run.created_at BETWEEN :low::bigint AND :high::bigint
