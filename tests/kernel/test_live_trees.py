"""What a worker keeps in memory: nothing twice, and nothing that is not taken apart when it goes."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from outlive._kernel.runtime.tree.trees import CACHED_SECONDS_MAX, LiveTrees
from outlive.telemetry import Counters
from outlive.testing.clock import ManualClock


@dataclass(eq=False)
class Live:
    """As much of a tree in motion as the trees see."""

    journal: int
    is_discarded: bool = False
    in_flight: int = 0
    nonce: str = ""
    epoch: int = 1

    def discard(self) -> None:
        """It is not used any more."""
        self.is_discarded = True

    @property
    def fold(self) -> Any:
        """Its history, of which only the root counts."""
        return SimpleNamespace(root=self)

    @property
    def id(self) -> str:
        """The id of the root run."""
        return f"run-{self.journal}"


def keep(trees: LiveTrees, live: Any) -> None:
    """Keep a stand-in."""
    trees.keep(live)


def add(trees: LiveTrees, live: Any) -> None:
    """Set a stand-in in motion."""
    trees.add(live.journal, live)


def remove(trees: LiveTrees, live: Any) -> None:
    """Let go of a stand-in."""
    trees.remove(live)


def expect(trees: LiveTrees, live: Any) -> None:
    """Let a stand-in begin."""
    trees.expect(live)


def answered(trees: LiveTrees, live: Any) -> None:
    """Answer all that a stand-in has under way."""
    trees.answered(live)


def is_claim_behind(trees: LiveTrees, run: Any) -> bool:
    """Whether what moves here is behind the claim of a stand-in."""
    return trees.is_behind(run)


def test_a_tree_that_is_kept_again_takes_the_place_of_what_was_kept_before() -> None:
    """It was claimed and rebuilt before its worker heard that it had let go of it: the older one is of no use."""
    trees = LiveTrees(cached_max=10, counters=Counters(), monotonic=lambda: 0.0)
    first, second = Live(1), Live(1)
    keep(trees, first)
    keep(trees, second)

    assert first.is_discarded
    assert not second.is_discarded
    keep(trees, second)
    assert not second.is_discarded


def test_the_one_that_was_kept_longest_goes_first() -> None:
    """When there are too many."""
    trees = LiveTrees(cached_max=2, counters=Counters(), monotonic=lambda: 0.0)
    lives = [Live(number) for number in range(3)]
    for live in lives:
        keep(trees, live)

    assert [live.is_discarded for live in lives] == [True, False, False]


def test_a_tree_that_was_not_used_for_long_goes() -> None:
    """Another worker may have ended its run meanwhile, which this one does not learn: it would be kept for nothing."""
    clock, counters = ManualClock(), Counters()
    trees = LiveTrees(cached_max=10, counters=counters, monotonic=lambda: clock() / 1e6)
    lives = [Live(number) for number in range(3)]
    keep(trees, lives[0])
    clock.advance(seconds=CACHED_SECONDS_MAX - 1)
    keep(trees, lives[1])
    assert not lives[0].is_discarded
    clock.advance(seconds=2)
    keep(trees, lives[2])

    assert [live.is_discarded for live in lives] == [True, False, False]
    assert counters.runs_evicted == 1


def test_a_tree_that_is_claimed_again_before_it_was_let_go_of_is_held_once() -> None:
    """It had not heard yet that it had suspended the first one: when the second one goes, nothing is left of it."""
    trees = LiveTrees(cached_max=10, counters=Counters(), monotonic=lambda: 0.0)
    first, second = Live(1), Live(1)
    add(trees, first)
    add(trees, second)
    remove(trees, first)
    assert trees.moves("run-1")

    remove(trees, second)
    assert not trees.moves("run-1")


def test_a_tree_that_was_given_up_is_answered_for_once() -> None:
    """The last answer of a tree may come twice: that is not a reason to forget another tree of the same id."""
    trees = LiveTrees(cached_max=10, counters=Counters(), monotonic=lambda: 0.0)
    first, second = Live(1, in_flight=1), Live(1)
    add(trees, first)
    remove(trees, first)
    add(trees, second)
    answered(trees, first)
    answered(trees, first)
    assert trees.moves("run-1")

    remove(trees, second)
    assert not trees.moves("run-1")


@pytest.mark.parametrize(
    ("nonces", "is_behind"),
    [([], False), (["mine"], False), (["other"], True), (["other", "mine"], False)],
    ids=str,
)
def test_a_claim_of_what_begins_here_is_not_taken_for_one_of_another_tree(nonces: list[str], is_behind: bool) -> None:  # noqa: FBT001
    """The nonce of a claim says which of two trees that begin under one id the store has taken."""
    trees = LiveTrees(cached_max=10, counters=Counters(), monotonic=lambda: 0.0)
    for nonce in nonces:
        expect(trees, Live(1, nonce=nonce))
    if nonces:
        expect(trees, Live(2, nonce="mine" if is_behind else "other"))

    assert is_claim_behind(trees, SimpleNamespace(id="run-1", journal=1, epoch=1, nonce="mine")) is is_behind


@pytest.mark.parametrize(("epoch", "is_behind"), [(1, True), (2, False), (3, False)])
def test_a_newer_claim_of_what_moves_here_is_ahead_of_it(epoch: int, is_behind: bool) -> None:  # noqa: FBT001
    """The older one has not heard yet that it is over."""
    trees = LiveTrees(cached_max=10, counters=Counters(), monotonic=lambda: 0.0)
    add(trees, Live(1, epoch=epoch))

    assert is_claim_behind(trees, SimpleNamespace(id="run-1", journal=1, epoch=2, nonce="")) is is_behind
