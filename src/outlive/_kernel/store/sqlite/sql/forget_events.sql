-- Events that a snapshot stands for.
DELETE FROM outlive_events WHERE journal = ?1 AND seq < ?2
