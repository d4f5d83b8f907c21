-- Messages to child runs that a snapshot stands for.
DELETE FROM outlive_inbox WHERE journal = ?1 AND run > 0 AND run < ?2
