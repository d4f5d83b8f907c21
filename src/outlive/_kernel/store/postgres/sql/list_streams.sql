SELECT stream.name, stream.position
FROM {schema}.runs AS run
JOIN {schema}.streams AS stream ON stream.journal = run.journal AND stream.run = run.number
WHERE run.id = $1
