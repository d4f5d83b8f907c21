"""Changes may be written with one statement if they come out the same in any order."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from outlive._kernel.model import Run, RunStatus
from outlive._kernel.store.contract import Change
from outlive._kernel.store.memory import MemoryStore
from outlive._kernel.store.tables.order import can_write_at_once
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import message, new_tree

store = MemoryStore(clock=ManualClock())


def tree(run_id: str, **parts: Any) -> Change:
    """A new tree."""
    return replace(new_tree(store, run_id), **parts)


def step(journal: int, **parts: Any) -> Change:
    """A change of a tree that exists."""
    return replace(new_tree(store, "any"), journal=journal, after=0, runs=[], **parts)


def renamed(journal: int, run_id: str) -> Run:
    """The root of a tree that shall have another id."""
    (root,) = new_tree(store, run_id).runs
    return replace(root, journal=journal)


def letter(run_id: str) -> dict[str, Any]:
    """A message to a run."""
    return {"messages": [message(store, run_id)]}


ENDED = replace(new_tree(store, "run-1").runs[0], status=RunStatus.CONTINUED, journal=1)
SUCCESSOR = tree("run-1", renames=[renamed(1, "run-1~gen1")], successor_of=1)
GOES_ON = replace(step(1), runs=[ENDED], starts=[SUCCESSOR])
"""Tree 1 ends, and goes on as the next generation."""
REPLACING = tree("old", renames=[renamed(3, "old~old1")])
RELEASED = replace(step(4), runs=[replace(ENDED, status=RunStatus.WAITING, journal=4, owner="")])

AT_ONCE: dict[str, list[Change]] = {
    "nothing that moves": [tree("a"), tree("b"), step(1), step(1, **letter("a"))],
    "a rename alone": [REPLACING],
    "a successor alone": [tree("successor", successor_of=1)],
    "the next generation": [GOES_ON],
    "the next generation, with a message to it": [replace(GOES_ON, **letter("run-1"))],
    "the next generation beside others": [GOES_ON, tree("another"), step(2, **letter("another"))],
    "two next generations": [
        GOES_ON,
        replace(step(2), runs=[replace(ENDED, journal=2)], starts=[tree("run-2", successor_of=2)]),
    ],
    "mail of another tree than the released one": [RELEASED, step(5, consumed=[1])],
}
ONE_BY_ONE: dict[str, list[Change]] = {
    "a rename beside something else": [REPLACING, step(2)],
    "a successor beside something else": [tree("successor", successor_of=1), step(2)],
    "another one takes the id": [GOES_ON, tree("run-1")],
    "another one takes an id like that of an earlier generation": [GOES_ON, tree("run-1~gen1")],
    "a start takes the id": [GOES_ON, step(2, starts=[tree("run-1")])],
    "a message to the id": [GOES_ON, step(2, **letter("run-1"))],
    "a message to a child": [GOES_ON, step(2, **letter("run-1~1"))],
    "the next generation of a tree that does not end": [step(1, starts=[SUCCESSOR])],
    "the next generation of another tree": [replace(GOES_ON, journal=2), step(1)],
    "a start takes what the renamed run takes": [
        replace(GOES_ON, starts=[tree("room"), tree("run-1", renames=[renamed(1, "room")], successor_of=1)])
    ],
    "a rename of another tree": [
        replace(GOES_ON, starts=[tree("run-1", renames=[renamed(2, "room")], successor_of=1)])
    ],
}


@pytest.mark.parametrize("changes", AT_ONCE.values(), ids=AT_ONCE)
def test_changes_that_do_not_touch_what_others_move_are_written_at_once(changes: list[Change]) -> None:
    """Whichever of them comes first."""
    assert can_write_at_once(changes)
    assert can_write_at_once(changes[::-1])


@pytest.mark.parametrize("changes", ONE_BY_ONE.values(), ids=ONE_BY_ONE)
def test_changes_that_may_touch_what_others_move_are_written_one_by_one(changes: list[Change]) -> None:
    """All at once they could come out otherwise."""
    assert not can_write_at_once(changes)
    assert not can_write_at_once(changes[::-1])


def test_message_that_woke_a_tree_is_not_consumed_at_the_same_time() -> None:
    """The release comes first: then the messages that it did not know of have made the tree due."""
    assert not can_write_at_once([RELEASED, step(4, consumed=[1])])
    assert can_write_at_once([step(4, consumed=[1]), RELEASED])
