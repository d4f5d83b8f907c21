"""A trial of a shared breaker says now and then that it is under way: for as long as that is so, and no longer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from outlive._kernel.model.breaker import Permit
from outlive._kernel.model.guard import Guard
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.runtime.gate.breakers import RENEW_SECONDS, Breakers, end_of
from outlive._kernel.runtime.gate.cells import LimitCells
from outlive._kernel.runtime.gate.ticket import AttemptEnd, Ticket
from outlive._kernel.store.memory import MemoryStore
from outlive.errors import StepInterruptedError, StepTimeoutError
from outlive.limits import Breaker
from outlive.telemetry import Counters
from outlive.testing.clock import ManualClock


class Ringing:
    """An alarm of the clock."""

    def __init__(self, seconds: float, ring: Callable[[], None]) -> None:
        self.seconds, self.ring, self.is_cancelled = seconds, ring, False

    def cancel(self) -> None:
        """Not any more."""
        self.is_cancelled = True


class RingingClock(SystemClock):
    """Its alarms go off when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.alarms: list[Ringing] = []

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Any:
        """Kept for the test."""
        self.alarms.append(Ringing(seconds, callback))
        return self.alarms[-1]


class Trial:
    """The breakers of an engine, and a trial of one of them."""

    def __init__(self, *, shared: bool = True, is_trial: bool = True) -> None:
        self.clock, self.spawned = RingingClock(), list[Coroutine[Any, Any, None]]()
        self.breakers = Breakers(
            LimitCells(MemoryStore(clock=ManualClock()), self.clock),
            clock=self.clock,
            counters=Counters(),
            spawn=self.spawned.append,  # type: ignore[arg-type]
        )
        guard = Guard(breaker=Breaker("trial", shared=shared))
        self.ticket = Ticket(guard, "permit", room_freed=lambda: None, over=lambda ticket, end: None)
        self.ticket.permit = Permit(id="permit", epoch=1, is_trial=is_trial)
        self.breakers.renew_later(self.ticket)

    def ring(self) -> int:
        """Let its alarm go off; how many tasks are made of that."""
        self.clock.alarms[-1].ring()
        count = len(self.spawned)
        for doing in self.spawned:
            doing.close()
        self.spawned.clear()
        return count


async def test_trial_that_is_under_way_says_so_in_time() -> None:
    """Each time before others may take it for failed."""
    trial = Trial()
    assert [RENEW_SECONDS] == [alarm.seconds for alarm in trial.clock.alarms]
    trial.clock.alarms[-1].ring()
    (renewing,) = trial.spawned
    trial.spawned.clear()
    await renewing
    assert [RENEW_SECONDS] * 2 == [alarm.seconds for alarm in trial.clock.alarms]
    assert 1 == trial.ring()


async def test_trial_that_is_over_says_nothing_more() -> None:
    """Its alarm is gone; and if it goes off all the same, nothing comes of it."""
    trial = Trial()
    trial.ticket.end(AttemptEnd.GOOD)
    assert trial.clock.alarms[-1].is_cancelled
    assert 0 == trial.ring()


async def test_engine_that_has_stopped_says_nothing_more() -> None:
    """The trial of a stopped engine fails in the store, which has had no report of it for long enough."""
    trial = Trial()
    trial.breakers.is_closed = True
    assert 0 == trial.ring()


@pytest.mark.parametrize("which", [{"shared": False}, {"is_trial": False}], ids=["not shared", "no trial"])
async def test_only_the_trial_of_a_shared_breaker_says_anything(which: dict[str, bool]) -> None:
    """No other process could take any other attempt for dead."""
    assert [] == Trial(**which).clock.alarms


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (None, AttemptEnd.GOOD),
        (ConnectionError("away"), AttemptEnd.BAD),
        (ValueError("an answer"), AttemptEnd.GOOD),
        (StepTimeoutError("pay", 1), AttemptEnd.BAD),
        (StepInterruptedError("pay", "its worker died", "key"), AttemptEnd.BAD),
        (SystemExit(1), AttemptEnd.BAD),
        (KeyboardInterrupt(), AttemptEnd.BAD),
    ],
    ids=repr,
)
def test_breaker_counts_what_it_is_about(error: BaseException | None, end: AttemptEnd) -> None:
    """Who had no answer has failed, whatever the policy says; an answer is what the policy says."""
    breaker = Breaker("picky", on=(ConnectionError,))
    assert end is end_of(breaker, error)
    assert AttemptEnd.GOOD is end_of(None, error)
