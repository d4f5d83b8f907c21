-- Delete all events of the trees ?1, a JSON array of handles.
DELETE FROM outlive_events WHERE journal IN (SELECT value FROM json_each(?1))
