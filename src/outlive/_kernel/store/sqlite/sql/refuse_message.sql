-- A message ?2 that the owner ?3 of the tree ?1 answers without making it an event.
DELETE FROM outlive_inbox
WHERE
    id = ?2 AND journal = ?1
    AND EXISTS (SELECT 1 FROM outlive_runs AS root WHERE root.key = ?1 AND root.owner = ?3)
