"""Authoring: how people write workflows and steps. Functions now; machines and flows will stand beside them."""
