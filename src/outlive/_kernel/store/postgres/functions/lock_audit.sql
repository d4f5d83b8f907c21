-- Wait until no other transaction writes the audit log of this schema; none does until this one is over.
CREATE FUNCTION {lock_audit}() RETURNS void LANGUAGE sql VOLATILE AS $body$
    -- Two numbers: ours, and that of the table. Locks of users are their own.
    SELECT pg_advisory_xact_lock(1869968492, ('{audit_table}'::regclass::oid::bigint - 2147483648)::integer)
$body$;
