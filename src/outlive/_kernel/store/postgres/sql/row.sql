-- The run of an entry of an index that is a table of its own; included in runs_with_tag.sql and its kin.
JOIN {schema}.runs AS run ON run.key = entry.run_key
