-- Rows of another log, as they are.
INSERT INTO {schema}.audit (number, at, actor, verb, target, body, hash)
SELECT carried.number, carried.at, carried.actor, carried.verb, carried.target, carried.body, carried.hash
FROM
    unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
    AS carried (number, at, actor, verb, target, body, hash)
