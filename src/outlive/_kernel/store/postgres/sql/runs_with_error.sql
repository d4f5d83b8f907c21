-- The runs that failed with an exception of this name; {wanted} compares the module too.
{schema}.runs AS run
WHERE
    run.failure IS NOT NULL
    AND md5(reverse(split_part(reverse({schema}.error_in(run.failure)), '.', 1))) = md5(:error_name::text)
    AND run.created_at BETWEEN :low::bigint AND :high::bigint
