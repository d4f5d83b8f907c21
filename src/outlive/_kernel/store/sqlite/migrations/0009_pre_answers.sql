-- A message that wants an answer gets one, which lies with its key: once, and for as long as the key is known.
ALTER TABLE outlive_inbox_keys ADD COLUMN answer TEXT;
