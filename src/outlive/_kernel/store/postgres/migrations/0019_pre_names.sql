-- The class of a step's failure was renamed: rows have its name of then, and of now.
DROP INDEX runs_error_created_at;

DROP FUNCTION error_in(text);

CREATE FUNCTION error_in(p_failure text) RETURNS text LANGUAGE sql IMMUTABLE AS $body$
    SELECT coalesce(
        CASE
            WHEN p_failure ~ '^."type":"outlive\.errors\.StepFailed(Error)?"'
                THEN nullif(split_part(split_part(p_failure, '"type_name":"', 2), '"', 1), '')
        END,
        split_part(p_failure, '"', 4)
    )
$body$;

CREATE INDEX runs_error_created_at ON runs (md5(reverse(split_part(reverse(error_in(failure)), '.', 1))), created_at, id)
WHERE failure IS NOT NULL;
