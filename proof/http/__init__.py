"""Proofs of the HTTP API: what its document promises, what bad requests get, and what a killed server leaves behind."""
