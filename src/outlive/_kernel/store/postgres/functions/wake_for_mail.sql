-- Make trees due that have mail; a parked one only if a RESUME is among it, and one that is to begin later not at all. A
-- wake-up never moves later.
CREATE FUNCTION {wake_for_mail}(p_now bigint, p_journals bigint[]) RETURNS void LANGUAGE sql VOLATILE AS $body$
    UPDATE {schema}.runs AS root
    SET wake_at = p_now
    WHERE
        root.key = ANY (p_journals)
        AND root.status IN {alive}
        AND (root.wake_at IS NULL OR (root.wake_at > p_now AND (root.status <> 'pending' OR root.epoch > 0)))
        AND EXISTS (
            SELECT FROM {schema}.inbox AS mail
            WHERE mail.journal = root.key AND (root.status <> 'parked' OR mail.kind = 'resume')
        )
$body$;
