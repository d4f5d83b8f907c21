-- How many runs fit, at most :limit, of those that one index finds.
SELECT count(*) FROM (SELECT FROM {source} AND {wanted} LIMIT :limit::bigint) AS counted
