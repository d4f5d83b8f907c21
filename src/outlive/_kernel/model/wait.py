"""The waits of suspended runs."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

DEADLINE = "@deadline"
"""The name of the timer that ends a run when its timeout is over."""


class WaitKind(enum.Enum):
    """The kinds of waits that a run can say."""

    TIMER = "timer"
    SIGNAL = "signal"
    RETRY = "retry"
    LIMIT = "limit"
    CHILD = "child"
    APPROVAL = "approval"
    PROMISE = "promise"
    ASK = "ask"


class Wait(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename={"detail": "told"}):
    """One thing that a run waits for; together they are the run's answer to "why does it not move?"."""

    kind: WaitKind
    name: str
    until_at: int | None = None
    """When the wait ends by itself; None if only the world can end it."""
    run: int = 0
    """The number of the waiting run in its tree."""
    detail: str = ""  # Journals call it `told`.
    """Details for people: what an approval is about, and who is asked."""


def for_people(waits: Iterable[Wait]) -> list[Wait]:
    """The waits of a run in the order in which people read them: the end of its timeout last."""
    return sorted(waits, key=lambda wait: wait.kind is WaitKind.TIMER and wait.name == DEADLINE)
