-- Forget what a step has set, locked and made, also what it committed.
RESET SESSION AUTHORIZATION;
RESET ROLE;
RESET ALL;
CLOSE ALL;
UNLISTEN *;
DISCARD TEMP;
DISCARD SEQUENCES;
SELECT pg_advisory_unlock_all()
