-- Messages to the tree ?1 with these keys were taken back.
DELETE FROM outlive_inbox_keys WHERE journal = ?1 AND key IN (SELECT value FROM json_each(?2))
