-- Something may follow this event, which had ended its tree.
UPDATE {schema}.events SET is_last = false WHERE journal = $1 AND seq = $2 AND is_last RETURNING seq
