"""Rows of sessions: what one that is not as it was says."""

from __future__ import annotations


def forgotten(worker_id: str, expires_at: int | None) -> str:
    """The fault, in words, if the row of a session ends its lease at this instant, earlier than it was last renewed;
    None if there is no row."""
    if expires_at is None:
        return f"it does not know the session {worker_id} any more"
    return f"it has forgotten that the lease of the session {worker_id} was renewed"
