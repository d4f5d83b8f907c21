-- What every list filters by; included in list_*.sql.
($1::bigint IS NULL OR (run.created_at, run.id) < ($1::bigint, $2::text COLLATE "C"))
AND (
    $4::text[] IS NULL OR run.status = ANY ($4::text[])
    OR (run.status NOT IN {stored} AND 'damaged' = ANY ($4::text[]))
)
AND ($5::text IS NULL OR run.workflow = $5::text)
AND ($6::text IS NULL OR run.root_id = $6::text)
AND ($7::text IS NULL OR run.parent_id = $7::text)
AND ($8::text IS NULL OR run.owner = $8::text)
AND (NOT $9::boolean OR run.number = 0)
AND ($10::text IS NULL OR NOT EXISTS (
    SELECT FROM json_each_text($10::json) AS wanted
    -- In the table and not in the row, whose JSON may be damaged: that would fail the whole list.
    WHERE NOT EXISTS (
        SELECT FROM {schema}.tags AS tag
        WHERE
            md5(tag.name) = md5(wanted.key) AND md5(tag.value) = md5(wanted.value)
            AND tag.created_at = run.created_at AND tag.run_key = run.key
            AND tag.name = wanted.key AND tag.value = wanted.value
    )
))
