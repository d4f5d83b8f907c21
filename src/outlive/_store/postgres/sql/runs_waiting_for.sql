-- The runs that wait for a signal, an approval or another run of this name.
{schema}.waits AS waiting
JOIN {schema}.runs AS run ON run.key = waiting.run_key
WHERE
    md5(waiting.name) = md5(:waiting_for::text) AND waiting.name = :waiting_for::text
    AND waiting.created_at BETWEEN :low::bigint AND :high::bigint
