-- Make trees due whose inbox has messages; a parked one only if a RESUME is among them, and one that is to begin later not at all. A
-- wake-up never moves later.
CREATE FUNCTION {wake_for_inbox}(p_now bigint, p_journals bigint[]) RETURNS void LANGUAGE sql VOLATILE AS $body$
    UPDATE {schema}.runs AS root
    SET wake_at = p_now
    WHERE
        root.key = ANY (p_journals)
        AND root.status IN {alive}
        AND (root.wake_at IS NULL OR (root.wake_at > p_now AND (root.status <> 'pending' OR root.epoch > 0)))
        AND EXISTS (
            SELECT FROM {schema}.inbox AS message
            WHERE message.journal = root.key AND (root.status <> 'parked' OR message.kind = 'resume')
        )
$body$;
