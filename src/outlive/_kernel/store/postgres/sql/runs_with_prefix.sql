-- The runs whose ids begin with this text. No id has a character that is as high as the last one of :id_end.
{schema}.runs AS run
WHERE run.id >= :id_prefix::text AND run.id < :id_end::text
