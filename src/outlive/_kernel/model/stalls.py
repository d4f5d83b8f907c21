"""Stalls: which runs stood on the event loop of a worker when it was blocked for as long as a lease.

They are kept in one cell (`STALLS_CELL`), the newest ones only. A stall names the epoch in which it happened, so
that a run that has made progress since is not held to it: the row of the run counts the interruptions without progress.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from outlive._kernel.model.run import Run

STALLS_CELL = "outlive.stalls"
KEPT_MAX = 200
"""Stalls in the cell; the oldest go first."""


class Stall(msgspec.Struct, frozen=True):
    """One of them."""

    run_id: str
    """The root of the tree that stood on the loop."""
    nonce: int
    epoch: int
    seconds: float
    """For how long the loop had not turned by then."""
    where: str
    """The line that blocked, for people."""


_decode = msgspec.json.Decoder(list[Stall]).decode


def stalls_in(data: bytes | None) -> list[Stall]:
    """The stalls in the cell; a cell that cannot be read has none."""
    try:
        return _decode(data) if data else []
    except msgspec.MsgspecError:
        return []


def with_stall(data: bytes | None, stall: Stall) -> bytes:
    """The content of the cell after one more stall."""
    return msgspec.json.encode([*stalls_in(data), stall][-KEPT_MAX:])


def stalls_of(root: Run, stalls: Sequence[Stall]) -> list[Stall]:
    """The stalls of a tree, claimed just now, since it last made progress."""
    last = [stall for stall in stalls if stall.nonce == root.nonce and stall.run_id == root.id]
    return [stall for stall in last if root.epoch - root.attempts <= stall.epoch < root.epoch]
