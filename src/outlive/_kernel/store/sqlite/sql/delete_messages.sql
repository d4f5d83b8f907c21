-- Messages that became facts; a tree can consume only its own.
DELETE FROM outlive_inbox
WHERE (id, journal) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?1))
