INSERT INTO outlive_streams (key, journal, run, name, position, items, bytes, mark, number, tail, tail_bytes, head)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (key) DO UPDATE SET
    position = excluded.position,
    items = excluded.items,
    bytes = excluded.bytes,
    mark = excluded.mark,
    number = excluded.number,
    tail = excluded.tail,
    tail_bytes = excluded.tail_bytes,
    head = excluded.head
RETURNING key
