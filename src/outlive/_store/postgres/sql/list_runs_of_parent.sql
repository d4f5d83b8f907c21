-- The newest runs that one run started.
SELECT {run_columns}
FROM {schema}.runs AS run
WHERE run.parent_id = $7 AND {wanted}
ORDER BY run.created_at DESC, run.id DESC
LIMIT $3
