"""What a worker would need for a definition that it does not have: steps that a flow of the library uses.

A worker lists such a definition beside those that it has, under a name of Outlive's own that no run has. So `why`
can say what is missing where, when no worker takes a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MARK = "outlive.lacks:"


def lacks_mark(definition: str, names: Iterable[str]) -> str:
    """What a worker lists that lacks these steps and workflows for a definition."""
    return f"{MARK}{definition}:{','.join(sorted(names))}"


def lacking_in(definitions: Iterable[str], definition: str) -> Sequence[str]:
    """What a worker with these definitions lacks for another one; empty if it has not said so."""
    start = f"{MARK}{definition}:"
    return next((each.removeprefix(start).split(",") for each in definitions if each.startswith(start)), ())
