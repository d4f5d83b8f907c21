"""Alarms: each run is looked at when it is due and not before, by one alarm of the clock for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.runtime.tree.alarms import LOOK_AGAIN_SECONDS, Alarms


class OneAlarm:
    """An alarm of the clock of a test."""

    def __init__(self, at: int, ring: Callable[[], None]) -> None:
        self.at, self.ring, self.is_cancelled = at, ring, False

    def cancel(self) -> None:
        """Not any more."""
        self.is_cancelled = True


class AlarmClock(SystemClock):
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 1_000 * MICROSECONDS
        self.alarms: list[OneAlarm] = []

    def now(self) -> int:
        """The time that the test has made."""
        return self.at

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Any:
        """Kept for the test."""
        assert seconds >= 0
        self.alarms.append(OneAlarm(self.at + round(seconds * MICROSECONDS), callback))
        return self.alarms[-1]

    @property
    def armed(self) -> list[float]:
        """After how many seconds an alarm goes off."""
        return [(alarm.at - self.at) / MICROSECONDS for alarm in self.alarms if not alarm.is_cancelled]

    def advance(self, seconds: float) -> None:
        """Let time pass, and what is due go off."""
        self.at += round(seconds * MICROSECONDS)
        due = [alarm for alarm in self.alarms if not alarm.is_cancelled and alarm.at <= self.at]
        self.alarms = [alarm for alarm in self.alarms if not alarm.is_cancelled and alarm.at > self.at]
        for alarm in due:
            alarm.ring()


class World:
    """Runs by their names, and which of them were looked at."""

    def __init__(self) -> None:
        self.clock = AlarmClock()
        self.rung: list[str] = []
        self.alarms = Alarms(self.clock, self.rung.append)  # type: ignore[arg-type]

    def set(self, name: str, seconds: float) -> None:
        """Look at a run after so many seconds."""
        self.alarms.set(name, self.clock.at + round(seconds * MICROSECONDS))  # type: ignore[arg-type]

    def forget(self, name: str) -> None:
        """Do not look at a run."""
        self.alarms.forget(name)  # type: ignore[arg-type]


@pytest.fixture
def world() -> World:
    """Of one test."""
    return World()


def test_runs_are_looked_at_in_the_order_in_which_they_are_due(world: World) -> None:
    """Whatever the order in which they said so; the clock has one alarm, for the next of them."""
    for name, seconds in (("late", 5), ("soon", 1), ("then", 3), ("with it", 3)):
        world.set(name, seconds)
    assert [1] == world.clock.armed
    world.clock.advance(0.5)
    assert [] == world.rung
    world.clock.advance(0.5)
    assert ["soon"] == world.rung
    assert [2] == world.clock.armed
    world.clock.advance(2)
    assert ["soon", "then", "with it"] == world.rung
    world.clock.advance(2)
    assert ["soon", "then", "with it", "late"] == world.rung
    assert [] == world.clock.armed


def test_earlier_alarm_of_a_run_counts_and_a_later_one_does_not(world: World) -> None:
    """It is asked again when it is looked at, so that the earliest is enough."""
    world.set("run", 5)
    world.set("run", 7)
    world.set("run", 5)
    assert [5] == world.clock.armed
    world.set("run", 2)
    assert [2] == world.clock.armed
    world.clock.advance(2)
    assert ["run"] == world.rung
    world.set("run", 1)
    assert [1] == world.clock.armed
    world.clock.advance(1)
    assert ["run", "run"] == world.rung


def test_run_whose_timer_is_far_is_looked_at_now_and_then(world: World) -> None:
    """So that an alarm does not keep it in memory for a year; and it costs one alarm, however often it is said."""
    year = 365 * 24 * 3600
    world.set("far", year)
    world.set("far", 2 * year)
    world.set("far", year)
    assert [LOOK_AGAIN_SECONDS] == world.clock.armed
    world.clock.advance(LOOK_AGAIN_SECONDS)
    assert ["far"] == world.rung
    assert [] == world.clock.armed


def test_run_that_is_forgotten_is_not_looked_at(world: World) -> None:
    """The clock is set for the next one, or for none."""
    world.set("a", 1)
    world.set("b", 2)
    world.forget("a")
    assert [2] == world.clock.armed
    world.forget("unknown")
    assert [2] == world.clock.armed
    world.clock.advance(2)
    assert ["b"] == world.rung
    world.set("c", 3)
    world.forget("c")
    assert [] == world.clock.armed
    world.set("d", 4)
    assert [4] == world.clock.armed
    world.clock.advance(4)
    assert ["b", "d"] == world.rung


def test_forgetting_a_later_run_leaves_the_alarm_of_the_next(world: World) -> None:
    """It is not set again for nothing."""
    world.set("a", 1)
    world.set("b", 2)
    before = len(world.clock.alarms)
    world.forget("b")
    assert before == len(world.clock.alarms)
    world.clock.advance(1)
    assert ["a"] == world.rung
    world.clock.advance(5)
    assert ["a"] == world.rung


def test_run_that_is_due_already_is_looked_at_at_once(world: World) -> None:
    """In the next turn, and not in the middle of what it does now."""
    world.set("late", -5)
    assert [0] == world.clock.armed
    assert [] == world.rung
    world.clock.advance(0)
    assert ["late"] == world.rung


def test_closed_alarms_are_silent(world: World) -> None:
    """Nothing is armed any more."""
    world.alarms.close()
    world.set("a", 1)
    world.alarms.close()
    assert [] == world.clock.armed
    world.clock.advance(1)
    assert [] == world.rung
