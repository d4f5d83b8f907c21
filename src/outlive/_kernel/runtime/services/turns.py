"""Turns: what a service does for a whole store is done by one of its workers at a time.

A cell that all workers share says when the next turn is. The worker that comes first takes it, and the others see that.
One that dies in its turn is not waited for longer than the turn may last. Nothing may depend on turns but how much work
is done: two workers may have one at once, if the first was very slow.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import msgspec

from outlive._kernel.model.instant import MICROSECONDS


class ServiceTurns(Protocol):
    """The content of such a cell: a frozen struct."""

    @property
    def next_at(self) -> int:
        """When the next turn is; while a worker has one, when that is taken from it."""


T = TypeVar("T", bound=ServiceTurns)


def read_turns(kind: type[T], data: bytes | None) -> T:
    """The turns in the cell; a cell that cannot be read has none."""
    try:
        return msgspec.json.decode(data, type=kind) if data else kind()
    except msgspec.MsgspecError:
        return kind()


def take_turn(kind: type[T], seconds: float, data: bytes | None, now: int) -> tuple[bytes | None, T | None]:
    """A change of the cell that takes a turn of at most so many seconds; its answer is what the cell said before, or
    None if it is not time for one."""
    seen: Any = read_turns(kind, data)
    if seen.next_at > now:
        return data, None
    return msgspec.json.encode(msgspec.structs.replace(seen, next_at=now + round(seconds * MICROSECONDS))), seen
