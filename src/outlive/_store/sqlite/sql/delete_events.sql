-- All events of these trees; ?1 is a JSON array of handles, here and in the files of the same kind.
DELETE FROM outlive_events WHERE journal IN (SELECT value FROM json_each(?1))
