-- What cell ?1 holds.
SELECT data FROM outlive_cells WHERE name = ?1
