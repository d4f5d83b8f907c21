-- Names of cells behind ?1, which may be none, at most ?2.
SELECT name FROM outlive_cells WHERE ?1 IS NULL OR name > ?1 ORDER BY name LIMIT ?2
