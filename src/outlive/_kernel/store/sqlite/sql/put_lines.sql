-- Make the lines known in which these runs are. A new one is next, or as late as those that were served last.
INSERT OR IGNORE INTO outlive_lines (queue, queue_key, definition, turn)
SELECT DISTINCT queue, queue_key, definition, 0.0
FROM outlive_runs
WHERE key IN (SELECT value FROM json_each(?1)) AND slot = 1
