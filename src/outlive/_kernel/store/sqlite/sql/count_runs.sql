-- How many runs fit, at most :limit, by their groups.
{groups}
SELECT count(*) FROM (SELECT 1 FROM {group_runs} AND {wanted} LIMIT :limit)
