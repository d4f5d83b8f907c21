-- The instant, when a worker should look at a schedule later than that, and the first $2 schedules that it should look at now.
WITH clock AS MATERIALIZED (
    SELECT {instant}($1) AS now
)
SELECT
    clock.now,
    (SELECT min(later.next_at) FROM {schema}.schedules AS later WHERE later.next_at > clock.now) AS later_at,
    due.name, due.next_at, due.revision, due.data
FROM clock
LEFT JOIN LATERAL (
    SELECT schedule.name, schedule.next_at, schedule.revision, schedule.data
    FROM {schema}.schedules AS schedule
    WHERE schedule.next_at <= clock.now
    ORDER BY schedule.next_at, schedule.name
    LIMIT $2::integer
) AS due ON true
