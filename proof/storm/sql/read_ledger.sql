SELECT key, place, value FROM storm_ledger
