-- Runs without a slot that are due get in line.
UPDATE outlive_runs SET slot = 1 WHERE key IN (SELECT value FROM json_each(?1)) AND slot = 0
