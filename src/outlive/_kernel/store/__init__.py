"""Stores: the contract (`contract`), and one module or folder for each backend that keeps it."""
