"""Authoring: how people write workflows and steps. Functions are here; machines and flows are rooms of their own."""
