-- The runs with these ids.
{schema}.runs AS run
WHERE run.id = ANY (:ids::text[])
