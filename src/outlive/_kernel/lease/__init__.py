"""Leases: their contract, and their keepers. A lease says which workers are alive."""
