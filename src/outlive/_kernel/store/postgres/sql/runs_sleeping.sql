-- The runs that a timer will wake.
{schema}.runs AS run
WHERE run.waits LIKE '%"kind":"timer"%' AND run.created_at BETWEEN :low::bigint AND :high::bigint
