-- Where a journal ends, and whether anything may follow.
SELECT seq, is_last, crc FROM outlive_events WHERE journal = ?1 ORDER BY seq DESC LIMIT 1
