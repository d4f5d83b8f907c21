-- How many entries of one index a list would have to look at, at most :limit.
SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT :limit)
