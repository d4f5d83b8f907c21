-- These schedules, which are locked, are so from now on.
UPDATE {schema}.schedules AS schedule
SET revision = new.revision, next_at = new.next_at, data = new.data
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[]) AS new (name, revision, next_at, data)
WHERE schedule.name = new.name
