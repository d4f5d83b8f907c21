"""Pauses: that people have stopped a run, a workflow or everything for a while, since when, and why.

A run that is paused by itself is parked, with a reason that begins with `PAUSED`. Pauses of workflows are kept in a
cell that all workers of a store look at (`PAUSES_CELL`).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

PAUSED = "paused"
"""How the reason of a run begins that a person has paused."""
PAUSES_CELL = "outlive.pauses"
EVERYTHING = "*"
"""Instead of the name of a workflow: all of them."""
MOVER = "outlive move"
"""The name that `outlive move` gives as `by` when it pauses the store from which it has moved the runs."""


class Pause(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pause: when it began, who asked for it and why."""

    at: int
    by: str = ""
    reason: str = ""
    replaced: Pause | None = None
    """The pause that this one took the place of, if it may come back."""

    def __str__(self) -> str:
        return paused_text(self.by, self.reason)


Pauses = Mapping[str, Pause]
"""By the name of the workflow."""
_decode = msgspec.json.Decoder(dict[str, Pause]).decode


def paused_text(by: str, reason: str) -> str:
    """The reason of a paused run."""
    return PAUSED + (f" by {by}" if by else "") + (f": {reason}" if reason else "")


def pauses_in(data: bytes | None) -> dict[str, Pause]:
    """The pauses in the cell; a cell that cannot be read pauses nothing."""
    try:
        return _decode(data) if data else {}
    except msgspec.MsgspecError:
        return {}


def moved_away(pauses: Pauses) -> Pause | None:
    """The pause of a store whose runs go on in another one, if it is such a store."""
    pause = pauses.get(EVERYTHING)
    return pause if pause is not None and pause.by == MOVER else None


def pauses_data(pauses: Pauses) -> bytes:
    """The content of the cell for these pauses."""
    return msgspec.json.encode(pauses)


def pause_of(pauses: Pauses, workflow: str) -> Pause | None:
    """The pause that a workflow is under, if it is."""
    return pauses.get(workflow) or pauses.get(EVERYTHING)
