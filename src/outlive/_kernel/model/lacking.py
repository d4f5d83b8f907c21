"""The steps that a flow of the library uses and a worker does not have.

A worker lists such a definition beside its own, under a name of Outlive's own that no run has. So `why`
can say what is missing where, when no worker takes a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MARK = "outlive.lacks:"


def lacks_mark(definition: str, names: Iterable[str]) -> str:
    """The entry in a worker's list of definitions that says which steps and workflows it lacks for one of them."""
    return f"{MARK}{definition}:{','.join(sorted(names))}"


def lacking_in(definitions: Iterable[str], definition: str) -> Sequence[str]:
    """The steps and workflows that a worker with these definitions lacks for another one; empty if it did not say
    so."""
    start = f"{MARK}{definition}:"
    return next((each.removeprefix(start).split(",") for each in definitions if each.startswith(start)), ())
