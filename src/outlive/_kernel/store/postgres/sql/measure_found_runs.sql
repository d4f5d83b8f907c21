-- How many entries of one index a list would have to look at, at most :limit.
SELECT count(*) FROM (SELECT FROM {source} LIMIT :limit::bigint) AS counted
