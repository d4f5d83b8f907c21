SELECT key, position, items, bytes, mark, number, tail, tail_bytes, head
FROM outlive_streams
WHERE journal = ?1 AND run = ?2 AND name = ?3
