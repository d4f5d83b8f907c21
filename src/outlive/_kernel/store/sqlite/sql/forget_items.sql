-- Items of child runs that a snapshot stands for.
DELETE FROM outlive_items WHERE journal = ?1 AND run > 0 AND run < ?2
