-- Whether a run may be in line in queue ?1.
SELECT EXISTS (SELECT 1 FROM outlive_lines WHERE queue = ?1)
