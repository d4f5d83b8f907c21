-- Whether schema $1 has the functions of this release.
SELECT EXISTS (
    SELECT FROM pg_proc AS function
    JOIN pg_namespace AS space ON space.oid = function.pronamespace
    WHERE space.nspname = $1 AND function.proname = 'commit_changes_{functions_version}'
)
