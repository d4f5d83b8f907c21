-- One process at a time; the lock goes with the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('outlive/' || $1::text, 0))
