"""Which changes may be written with one statement: those that come out the same in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from outlive._model import Run
from outlive._store.contract import Change
from outlive._store.memory import MemoryStore
from outlive._store.postgres.connection import Session
from outlive._store.postgres.order import is_order_indifferent
from outlive.testing.clock import ManualClock
from outlive.testing.conformance.builders import message, new_tree

store = MemoryStore(clock=ManualClock())


class Ids:
    """In the place of a session: runs have the id `old-<journal>` now."""

    def __init__(self) -> None:
        self.looks = 0

    async def fetch(self, name: str, journals: Sequence[int], numbers: Sequence[int]) -> list[tuple[Any, ...]]:
        assert name == "find_ids"
        self.looks += 1
        return [(journal, number, f"old-{journal}") for journal, number in zip(journals, numbers, strict=True)]


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


RENAMING = tree("old-1", renames=[renamed(1, "made-room")])
"""Tree 1, which has `old-1` now, makes room for another one."""
HEIR = tree("heir", heir_of=1)

INDIFFERENT: dict[str, list[Change]] = {
    "nothing that moves": [tree("a"), tree("b"), step(1), step(1, **letter("a"))],
    "one alone": [RENAMING],
    "a rename beside a new tree": [RENAMING, tree("another")],
    "a rename beside a step of another tree": [RENAMING, step(2)],
    "a rename beside a letter to another run": [RENAMING, step(2, **letter("another"))],
    "two renames of different trees": [RENAMING, tree("old-2", renames=[renamed(2, "made-room-too")])],
    "an heir beside a step of another tree": [HEIR, step(2), tree("another")],
    "a tree that ends and starts its heir": [step(1, starts=[HEIR], **letter("heir"))],
    "a tree that ends and starts what takes its id": [step(1, starts=[RENAMING], **letter("old-1"))],
    "an heir that is the first of several starts": [step(1, starts=[HEIR, tree("another")])],
}
MATTERS: dict[str, list[Change]] = {
    "a new tree takes what is given up": [RENAMING, tree("old-1")],
    "a new tree takes what the renamed one takes": [RENAMING, tree("made-room")],
    "a letter to what is given up": [RENAMING, step(2, **letter("old-1"))],
    "a letter to what the renamed one takes": [RENAMING, step(2, **letter("made-room"))],
    "a step of the renamed tree": [RENAMING, step(1)],
    "the same tree renamed twice": [RENAMING, tree("another", renames=[renamed(1, "somewhere-else")])],
    "two that make room under one id": [RENAMING, tree("old-2", renames=[renamed(2, "made-room")])],
    "a step of the tree that is inherited from": [HEIR, step(1)],
    "two heirs of one tree": [HEIR, tree("another", heir_of=1)],
    "a start that takes what is given up": [RENAMING, step(2, starts=[tree("old-1")])],
    "a start that inherits from another's tree": [step(1), step(2, starts=[HEIR])],
}


@pytest.mark.parametrize("changes", INDIFFERENT.values(), ids=INDIFFERENT)
async def test_changes_that_do_not_touch_what_others_move_are_written_at_once(changes: list[Change]) -> None:
    """Whichever of them comes first."""
    assert await is_order_indifferent(cast("Session", Ids()), changes)
    assert await is_order_indifferent(cast("Session", Ids()), changes[::-1])


@pytest.mark.parametrize("changes", MATTERS.values(), ids=MATTERS)
async def test_changes_that_touch_what_others_move_are_written_one_by_one(changes: list[Change]) -> None:
    """All at once they would come out otherwise."""
    assert not await is_order_indifferent(cast("Session", Ids()), changes)
    assert not await is_order_indifferent(cast("Session", Ids()), changes[::-1])


@pytest.mark.parametrize(
    ("changes", "looks"),
    [
        ([tree("a"), step(1)], 0),
        ([RENAMING], 0),
        ([RENAMING, step(2)], 0),
        ([HEIR, tree("another")], 0),
        ([RENAMING, tree("another")], 1),
        ([RENAMING, step(2, **letter("another"))], 1),
        ([RENAMING, step(3, starts=[tree("old-2", renames=[renamed(2, "made-room-too")])])], 1),
    ],
)
async def test_the_server_is_asked_for_ids_only_if_they_matter(changes: list[Change], looks: int) -> None:
    """A busy engine does it all the time, and each look is a way to the server and back."""
    ids = Ids()

    await is_order_indifferent(cast("Session", ids), changes)

    assert ids.looks == looks
