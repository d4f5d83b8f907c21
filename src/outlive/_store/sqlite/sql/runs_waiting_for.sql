-- The runs that wait for a signal, an approval or another run of this name.
outlive_waits AS waiting
CROSS JOIN outlive_runs AS run ON run.key = waiting.run_key
WHERE waiting.name = :waiting_for AND waiting.created_at BETWEEN :low AND :high
