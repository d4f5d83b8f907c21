-- How many runs the wanted groups have that were created in time, at most :limit.
{groups}
SELECT count(*) FROM (
    SELECT
    FROM groups
    CROSS JOIN LATERAL (SELECT FROM {runs_of_group} LIMIT :limit::bigint) AS found
    WHERE {wanted_groups}
    LIMIT :limit::bigint
) AS counted
