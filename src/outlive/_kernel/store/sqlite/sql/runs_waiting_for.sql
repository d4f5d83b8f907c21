-- The runs that wait for a signal, an approval or another run of this name.
outlive_waits AS entry
{row}
WHERE entry.name = :waiting_for AND entry.created_at BETWEEN :low AND :high
