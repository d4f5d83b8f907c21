"""Runs of flows: `plan` makes a plan of a document, `driver` runs its steps in their order, `target` calls each."""
