-- The runs that a timer will wake.
outlive_runs AS run INDEXED BY outlive_runs_sleeping
WHERE instr(run.waits, '"kind":"timer"') > 0 AND run.created_at BETWEEN :low AND :high
