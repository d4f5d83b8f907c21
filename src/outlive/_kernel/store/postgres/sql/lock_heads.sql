-- Those of the runs $1 that are still in line and that no other transaction has locked, with the last events of their
-- journals; none if worker $2 does not live at $3.
SELECT
    {run_columns},
    (
        SELECT CASE WHEN NOT event.is_last THEN (event.seq, event.format, event.crc, event.body) END
        FROM {schema}.events AS event
        WHERE event.journal = run.key
        ORDER BY event.seq DESC
        LIMIT 1
    ) AS tail
FROM {schema}.runs AS run
WHERE
    run.key = ANY ($1::bigint[]) AND run.slot + 0 = 1 AND run.owner || '' = '' AND run.status || '' IN {alive}
    AND EXISTS (
        SELECT FROM {schema}.workers AS worker
        WHERE worker.id = $2 AND worker.expires_at > $3 AND NOT worker.is_retired
    )
FOR NO KEY UPDATE OF run SKIP LOCKED
