-- What the other streams of a run have.
SELECT count(*), coalesce(sum(items), 0), coalesce(sum(bytes), 0)
FROM outlive_streams
WHERE journal = ?1 AND run = ?2 AND name <> ?3
