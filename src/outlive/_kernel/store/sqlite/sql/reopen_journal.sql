-- Something may follow the event ?2 of the journal ?1, which had ended its tree.
UPDATE outlive_events SET is_last = 0 WHERE journal = ?1 AND seq = ?2
