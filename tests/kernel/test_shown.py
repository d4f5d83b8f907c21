"""The secrets of journals that people look at: how many are kept."""

from __future__ import annotations

import weakref
from typing import Any

from outlive._kernel.client.shown import KNOWN_MAX, Shown
from outlive._kernel.model import Run


def test_secrets_of_the_journals_that_were_looked_at_last_are_kept() -> None:
    """The journal that was not looked at for the longest time is forgotten, unless a reader holds its secrets."""
    nothing: Any = None
    shown = Shown(nothing, nothing)
    rows = [
        Run(id="o", root_id="o", workflow="order", version=1, nonce=1, journal=number)
        for number in range(KNOWN_MAX + 2)
    ]
    known = [weakref.ref(shown.known_of(row)) for row in rows[:KNOWN_MAX]]
    held = shown.known_of(rows[1])
    shown.known_of(rows[0])

    for row in rows[KNOWN_MAX:]:
        shown.known_of(row)

    assert [number for number, it in enumerate(known) if it() is None] == [2, 3]
    assert shown.known_of(rows[1]) is held
