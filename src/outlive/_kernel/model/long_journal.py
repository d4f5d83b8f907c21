"""The warning for a run whose journal has become long: every replay reads all of it."""

from __future__ import annotations

OWN = "outlive."
"""The prefix of the names of workflows that are part of the engine, such as batches: users cannot change them."""


def long_journal_shown(workflow: str, events: int) -> str:
    """Advice for a run of this workflow with more than so many events; empty if its code is the engine's."""
    if workflow.startswith(OWN):
        return ""
    return (
        f"its journal has more than {events:,} events, which every replay reads: let it go on with "
        "outlive.continue_as_new, or start parts of its work as runs of their own"
    )
