-- The same as read_journals.sql for one journal, event by event: for rows that are too large to be given at once.
SELECT seq, format, crc, body FROM outlive_events WHERE journal = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3
