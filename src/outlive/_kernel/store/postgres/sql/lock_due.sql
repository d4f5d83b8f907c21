-- The first $5 of the runs $4 that are still due and free at $1, locked, with the last events of their journals. Locked
-- ones are being taken by other workers. They are all orphans (of owners who have not been alive for $7 microseconds) if $6,
-- else runs without an owner.
--
-- Columns are wrapped (`+ 0`, `|| ''`) so that no index but that of the keys fits: the planner likes to combine it with
-- the index of claiming, and walks over all runs that are asleep for that.
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
    run.key = ANY ($4::bigint[])
    AND run.wake_at + 0 <= $1 AND run.number + 0 = 0 AND run.status || '' IN {alive}
    AND (run.queue IS NULL OR run.slot + 0 = 2)
    AND run.definition || '' = ANY ($3::text[])
    AND (run.owner <> '') = $6::boolean
    AND (
        NOT $6::boolean OR NOT EXISTS (
            SELECT FROM {schema}.workers AS worker
            WHERE
                worker.id = run.owner AND worker.expires_at + $7::bigint > $1
                AND NOT (worker.is_retired AND $7::bigint = 0)
        )
    )
    AND EXISTS (
        SELECT FROM {schema}.workers AS worker
        WHERE worker.id = $2 AND worker.expires_at > $1 AND NOT worker.is_retired
    )
ORDER BY run.wake_at, run.key
LIMIT $5
FOR NO KEY UPDATE OF run SKIP LOCKED
