-- The runs that wait for a signal, an approval or another run of this name.
{schema}.waits AS entry
{row}
WHERE
    md5(entry.name) = md5(:waiting_for::text) AND entry.name = :waiting_for::text
    AND entry.created_at BETWEEN :low::bigint AND :high::bigint
