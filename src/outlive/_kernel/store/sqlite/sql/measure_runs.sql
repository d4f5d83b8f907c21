-- How many runs the wanted groups have that were created in time, at most :limit.
{groups}
SELECT count(*) FROM (SELECT 1 FROM {group_runs} LIMIT :limit)
