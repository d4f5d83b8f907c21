-- Which of the given runs, all in line, have a row for their line.
SELECT json_group_array(run.key)
FROM json_each(?1) AS wanted
CROSS JOIN outlive_runs AS run ON run.key = wanted.value
CROSS JOIN outlive_lines AS line
    ON line.queue = run.queue AND line.queue_key = run.queue_key AND line.definition = run.definition
