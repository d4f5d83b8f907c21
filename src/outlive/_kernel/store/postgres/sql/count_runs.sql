-- How many runs fit, at most :limit, by their groups.
{groups}
SELECT count(*) FROM (
    SELECT
    FROM groups
    CROSS JOIN LATERAL (SELECT FROM {runs_of_group} AND {wanted} LIMIT :limit::bigint) AS found
    WHERE {wanted_groups}
    LIMIT :limit::bigint
) AS counted
