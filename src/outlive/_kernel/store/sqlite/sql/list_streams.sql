SELECT stream.name, stream.position
FROM outlive_runs AS run
CROSS JOIN outlive_streams AS stream ON stream.journal = run.journal AND stream.run = run.number
WHERE run.id = ?1
ORDER BY stream.name
