INSERT INTO storm_ledger (key, place, value) VALUES ($1, $2, $3)
