DELETE FROM outlive_audit WHERE number <= ?1
