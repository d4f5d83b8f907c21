SELECT key, place, value FROM kill_ledger
