-- Which of the given runs, all in line, have a row for their line.
SELECT run.key
FROM {schema}.runs AS run
JOIN {schema}.lines AS line
    ON line.queue = run.queue AND line.queue_key = run.queue_key AND line.definition = run.definition
WHERE run.key = ANY ($1::bigint[])
