-- Make trees due whose inbox has messages; a parked one only if a RESUME is among them, and one that is to begin later not at all. A
-- wake-up never moves later.
--
-- Also run when a tree is released: its writer may not have seen the messages that came meanwhile.
UPDATE outlive_runs
SET wake_at = ?2
WHERE
    key IN (SELECT value FROM json_each(?1))
    AND status IN {alive}
    AND (wake_at IS NULL OR (wake_at > ?2 AND (status <> 'pending' OR epoch > 0)))
    AND EXISTS (
        SELECT 1
        FROM outlive_inbox AS message
        WHERE message.journal = outlive_runs.key AND (outlive_runs.status <> 'parked' OR message.kind = 'resume')
    )
