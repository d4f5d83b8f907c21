-- The runs whose ids begin with this text. No id has a character that is as high as the last one of :id_end.
outlive_runs AS run INDEXED BY outlive_runs_id
WHERE run.id >= :id_prefix AND run.id < :id_end
