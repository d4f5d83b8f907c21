-- The turns of keys of queue ?1, as [queue_key, turn] in ?2.
UPDATE outlive_lines
SET turn = (SELECT new.value ->> 1 FROM json_each(?2) AS new WHERE new.value ->> 0 = outlive_lines.queue_key)
WHERE queue = ?1 AND queue_key IN (SELECT value ->> 0 FROM json_each(?2))
