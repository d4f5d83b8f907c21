"""What a worker keeps in memory: nothing twice, and nothing that is not taken apart when it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from outlive._runtime.holdings import Holdings
from outlive.telemetry import Counters


@dataclass(eq=False)
class Execution:
    """As much of an execution as the holdings see."""

    is_dropped: bool = False

    def drop(self) -> None:
        """Leave memory."""
        self.is_dropped = True


@dataclass(eq=False)
class Live:
    """As much of a tree in motion as the holdings see."""

    journal: int
    execution: Execution = field(default_factory=Execution)
    in_flight: int = 0

    @property
    def id(self) -> str:
        """The id of the root run."""
        return f"run-{self.journal}"


def keep(holdings: Holdings, live: Any) -> None:
    """Keep a stand-in."""
    holdings.keep(live)


def add(holdings: Holdings, live: Any) -> None:
    """Set a stand-in in motion."""
    holdings.add(live.journal, live)


def remove(holdings: Holdings, live: Any) -> None:
    """Let go of a stand-in."""
    holdings.remove(live)


def test_a_tree_that_is_kept_again_takes_the_place_of_what_was_kept_before() -> None:
    """It was claimed and rebuilt before its worker heard that it had let go of it: the older one is of no use."""
    holdings = Holdings(cached_max=10, counters=Counters())
    first, second = Live(1), Live(1)
    keep(holdings, first)
    keep(holdings, second)

    assert first.execution.is_dropped
    assert not second.execution.is_dropped
    keep(holdings, second)
    assert not second.execution.is_dropped


def test_the_one_that_was_kept_longest_goes_first() -> None:
    """When there are too many."""
    holdings = Holdings(cached_max=2, counters=Counters())
    lives = [Live(number) for number in range(3)]
    for live in lives:
        keep(holdings, live)

    assert [live.execution.is_dropped for live in lives] == [True, False, False]


def test_a_tree_that_is_claimed_again_before_it_was_let_go_of_is_held_once() -> None:
    """It had not heard yet that it had suspended the first one: when the second one goes, nothing is left of it."""
    holdings = Holdings(cached_max=10, counters=Counters())
    first, second = Live(1), Live(1)
    add(holdings, first)
    add(holdings, second)
    remove(holdings, first)
    assert holdings.moves("run-1")

    remove(holdings, second)
    assert not holdings.moves("run-1")
