"""What a careless author might have written about machines: see `proof.simulation.switches`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from outlive._features.machines import snapshots
from outlive._features.machines.snapshots import MachineSnapshots, Owed
from outlive._features.machines.wire import NULL
from outlive._kernel.model import limit as limits
from outlive._kernel.model.limit import RateLimit, TierLevel
from outlive._kernel.replay.frame import Remembered, Scope
from outlive._kernel.replay.rollback import Rollback
from outlive._kernel.replay.saga import Booking, Saga
from outlive._kernel.runtime.gate.gate import Gate
from proof.simulation.replacing import replaced


@contextmanager
def _without_newest() -> Iterator[None]:
    """A snapshot forgets what was done last of all that would have to be undone."""
    owed = MachineSnapshots._owed

    def forgetful(self: MachineSnapshots) -> list[Owed] | None:
        return (owed(self) or [])[:-1]

    with replaced(MachineSnapshots, "_owed", forgetful):
        yield


@contextmanager
def _without_completion() -> Iterator[None]:
    """A snapshot says where the machine was before the state that it has just left: the worker that takes over
    does that again."""
    rest = MachineSnapshots.take_if_due
    last: WeakKeyDictionary[MachineSnapshots, tuple[str, msgspec.Raw, msgspec.Raw]] = WeakKeyDictionary()

    async def late(self: MachineSnapshots, data: msgspec.Raw, cursor: msgspec.Raw = NULL) -> None:
        now = self.state, data, cursor
        self.state, data, cursor = last.get(self, now)
        last[self] = now
        await rest(self, data, cursor)
        self.state = now[0]

    with replaced(MachineSnapshots, "take_if_due", late):
        yield


@contextmanager
def _without_late_branches() -> Iterator[None]:
    """A split forgets the branches that came too late, and they are not undone."""
    take = Saga.take_given_up

    def forgetful(self: Saga) -> list[Booking]:
        take(self)
        return []

    with replaced(Saga, "take_given_up", forgetful):
        yield


@contextmanager
def _without_order() -> Iterator[None]:
    """What was done first is undone first."""
    begin = Rollback.__init__

    def wrong_way_round(self: Rollback, *args: Any, **options: Any) -> None:
        begin(self, *args, **options)
        self._left.reverse()

    with replaced(Rollback, "__init__", wrong_way_round):
        yield


def _count_nothing(limit: RateLimit, levels: dict[str, TierLevel], cost: int, at: int) -> dict[str, TierLevel]:
    return levels


async def _skip_limit(self: Gate, *args: Any) -> None:
    return None


def _remember_nothing(self: Scope, remembered: Remembered) -> None:
    return None


MACHINE_SWITCHES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "owed": _without_newest,
    "completion": _without_completion,
    "calls": partial(replaced, Scope, "go_on", _remember_nothing),
    "snapshot": partial(replaced, snapshots, "may_take_snapshot", lambda tree: False),
    "late branch": _without_late_branches,
    "order": _without_order,
    "limit": partial(replaced, limits, "_charged", _count_nothing),
    "gate": partial(replaced, Gate, "_ask_limit", _skip_limit),
}
"""A snapshot lacks an undo that is left, or the last transition, or how often each step was called; it is never taken;
branches that come too late are not undone; roll-backs begin at the wrong end; a limit does not count, or is not
asked."""
