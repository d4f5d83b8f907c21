-- How many messages wait for a tree, counted up to a limit.
SELECT count(*) FROM (SELECT 1 FROM outlive_inbox WHERE journal = ?1 LIMIT ?2)
