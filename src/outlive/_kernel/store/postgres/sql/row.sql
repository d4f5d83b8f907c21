-- The run of an entry of an index that is a table of its own; included in runs_with_tag.sql and its kin. OFFSET 0 has the
-- server look the run up by its key for each entry: without statistics it would go through all runs each time.
CROSS JOIN LATERAL (SELECT * FROM {schema}.runs WHERE key = entry.run_key OFFSET 0) AS run
