-- The newest runs that one worker owns. Only roots have an owner.
SELECT {run_columns}
FROM {schema}.runs AS run
WHERE run.owner = $8 AND run.owner <> '' AND run.number = 0 AND {wanted}
ORDER BY run.created_at DESC, run.id DESC
LIMIT $3
