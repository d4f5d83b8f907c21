-- Streams of child runs that a snapshot stands for.
DELETE FROM outlive_streams WHERE journal = ?1 AND run > 0 AND run < ?2
