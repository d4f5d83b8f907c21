-- Cell ?1 holds nothing from now on.
DELETE FROM outlive_cells WHERE name = ?1
