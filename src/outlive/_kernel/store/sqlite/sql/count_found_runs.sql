-- How many runs fit, at most :limit, of those that one index finds.
SELECT count(*) FROM (SELECT 1 FROM {source} AND {wanted} LIMIT :limit)
