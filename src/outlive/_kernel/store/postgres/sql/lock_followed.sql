-- Hold, with the connection that listens to the channel $1, the lock by which commits know that a process follows runs.
SELECT pg_advisory_lock_shared(hashtextextended($1::text, 0))
