"""What a worker keeps in memory: nothing twice, and nothing that is not taken apart when it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

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
    nonce: str = ""
    epoch: int = 1

    @property
    def fold(self) -> Any:
        """Its history, of which only the root counts."""
        return SimpleNamespace(root=self)

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


def expect(holdings: Holdings, live: Any) -> None:
    """Let a stand-in begin."""
    holdings.expect(live)


def answered(holdings: Holdings, live: Any) -> None:
    """Answer all that a stand-in has under way."""
    holdings.answered(live)


def is_claim_behind(holdings: Holdings, run: Any) -> bool:
    """Whether what moves here is behind the claim of a stand-in."""
    return holdings.is_behind(run)


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


def test_a_tree_that_was_given_up_is_answered_for_once() -> None:
    """Its last answer may be told twice: that is no reason to forget another tree of the same id."""
    holdings = Holdings(cached_max=10, counters=Counters())
    first, second = Live(1, in_flight=1), Live(1)
    add(holdings, first)
    remove(holdings, first)
    add(holdings, second)
    answered(holdings, first)
    answered(holdings, first)
    assert holdings.moves("run-1")

    remove(holdings, second)
    assert not holdings.moves("run-1")


@pytest.mark.parametrize(
    ("nonces", "is_behind"),
    [([], False), (["mine"], False), (["other"], True), (["other", "mine"], False)],
    ids=str,
)
def test_a_claim_of_what_begins_here_is_told_from_one_of_another_tree(nonces: list[str], is_behind: bool) -> None:  # noqa: FBT001
    """Of two that want to begin under one id the store takes one, and its nonce says which."""
    holdings = Holdings(cached_max=10, counters=Counters())
    for nonce in nonces:
        expect(holdings, Live(1, nonce=nonce))
    if nonces:
        expect(holdings, Live(2, nonce="mine" if is_behind else "other"))

    assert is_claim_behind(holdings, SimpleNamespace(id="run-1", journal=1, epoch=1, nonce="mine")) is is_behind


@pytest.mark.parametrize(("epoch", "is_behind"), [(1, True), (2, False), (3, False)])
def test_a_newer_claim_of_what_moves_here_is_ahead_of_it(epoch: int, is_behind: bool) -> None:  # noqa: FBT001
    """The older one has not heard yet that it is over."""
    holdings = Holdings(cached_max=10, counters=Counters())
    add(holdings, Live(1, epoch=epoch))

    assert is_claim_behind(holdings, SimpleNamespace(id="run-1", journal=1, epoch=2, nonce="")) is is_behind
