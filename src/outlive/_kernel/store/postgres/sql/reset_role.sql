-- Whatever a step has set, the journal is written by us and kept as safely as ever.
RESET SESSION AUTHORIZATION;
RESET ROLE;
RESET synchronous_commit
