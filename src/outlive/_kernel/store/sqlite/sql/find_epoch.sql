-- By which claim a tree is owned, unless it has ended, and the id of its root.
SELECT epoch, id FROM outlive_runs WHERE key = ?1 AND number = 0 AND status IN {alive}
