-- All lock them in the same order.
WITH locked AS MATERIALIZED (
    SELECT run_id FROM {schema}.requests WHERE run_id = ANY ($1::text[]) ORDER BY run_id FOR UPDATE
)
DELETE FROM {schema}.requests AS request USING locked WHERE request.run_id = locked.run_id RETURNING request.run_id, request.tree
