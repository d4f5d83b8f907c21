"""The journal: events, their bytes, and what the run rows make of them. Knows no store and no workflow."""
