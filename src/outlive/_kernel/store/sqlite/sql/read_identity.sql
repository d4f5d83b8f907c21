-- What kind of database this is.
SELECT
    (SELECT application_id FROM pragma_application_id),
    (SELECT count(*) FROM sqlite_schema),
    (SELECT count(*) FROM sqlite_schema WHERE name = 'outlive_migrations')
