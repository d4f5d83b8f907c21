"""Planted defects in journals that forget: each is found by the test that is meant to find it."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import pytest
from msgspec.structs import replace

from outlive._kernel.store.contract import PAGE_SIZE_MAX, Change, Forgotten, ItemResult, Outcome
from outlive._kernel.store.memory import MemoryStore, Tree
from outlive_conformance.suite import MemoryFactory, find_failures


class Defective(MemoryStore):
    """The oracle with one defect; says which test must find it."""

    found_by: ClassVar[str]


class ForgetsNothing(Defective):
    """Keeps everything for ever."""

    found_by = "test_events_before_a_snapshot_are_gone"

    def _forget(self, tree: Tree, forgotten: Forgotten) -> None:
        """Do nothing."""


class ForgetsBeforeTheChange(Defective):
    """Leaves the events that came with the snapshot."""

    found_by = "test_events_of_the_same_change_before_the_snapshot_are_gone"

    def _write(self, tree: Tree, change: Change) -> None:
        if change.forgets is not None:
            self._forget(tree, change.forgets)
        super()._write(tree, replace(change, forgets=None))


class CountsRows(Defective):
    """Takes the number of rows for the seq of the last one."""

    found_by = "test_writer_whose_last_event_is_forgotten_conflicts"

    def _find_writable(self, change: Change) -> Tree | None:
        tree = self._state.trees.get(change.journal)
        if tree is not None and len(tree.rows) == change.after + 1:
            return tree
        return super()._find_writable(change)


class KeepsChildren(Defective):
    """Forgets events alone."""

    found_by = "test_ended_children_are_gone_with_their_items"

    def _forget(self, tree: Tree, forgotten: Forgotten) -> None:
        super()._forget(tree, Forgotten(forgotten.before, 0))


class KeepsItems(Defective):
    """Forgets the child, and not what became of its items."""

    found_by = "test_ended_children_are_gone_with_their_items"

    def _forget(self, tree: Tree, forgotten: Forgotten) -> None:
        items = dict(tree.items)
        super()._forget(tree, forgotten)
        tree.items = items

    async def read_items(self, run_id: str, *, after: int = -1, limit: int = PAGE_SIZE_MAX) -> list[ItemResult]:
        """By the number in the id."""
        number = int(run_id.partition("~")[2] or 0)
        items = [item for tree in self._state.trees.values() for item in tree.items.values() if item.run == number]
        return [item for item in items if item.index > after][:limit]


class ForgetsAllChildren(Defective):
    """Forgets the children that came later, too."""

    found_by = "test_ended_children_are_gone_with_their_items"

    def _forget(self, tree: Tree, forgotten: Forgotten) -> None:
        super()._forget(tree, Forgotten(forgotten.before, 1_000))


class ForgetsKeys(Defective):
    """Takes a repeated message for a new one."""

    found_by = "test_messages_and_their_keys_are_kept"

    def _forget(self, tree: Tree, forgotten: Forgotten) -> None:
        super()._forget(tree, forgotten)
        tree.keys = set()


class ForgetsTooEarly(Defective):
    """Before it knows whether the change can be written."""

    found_by = "test_conflicting_change_forgets_nothing"

    def _find_writable(self, change: Change) -> Tree | None:
        tree = self._state.trees.get(change.journal)
        if tree is not None and change.forgets is not None:
            self._forget(tree, change.forgets)
        return super()._find_writable(change)


class ForgetsWhatTheLastOneSays(Defective):
    """Looks at one change of a call for each tree."""

    found_by = "test_each_change_of_a_call_forgets_what_it_says"

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        last = {change.journal: change.forgets for change in changes if change.journal}
        return await super().commit([replace(change, forgets=last.get(change.journal)) for change in changes])


class WakesForNothing(Defective):
    """Looks for messages before they are gone."""

    found_by = "test_message_that_goes_wakes_no_run"

    def _write(self, tree: Tree, change: Change) -> None:
        super()._write(tree, replace(change, forgets=None))
        if change.forgets is not None:
            self._forget(tree, change.forgets)


class WritesTooQuickly(Defective):
    """Sees no more than rows in a change that changes no run."""

    found_by = "test_change_of_nothing_but_rows_forgets"

    def _forget(self, tree: Tree, forgotten: Forgotten) -> None:
        if not self._is_quick:
            super()._forget(tree, forgotten)

    def _write(self, tree: Tree, change: Change) -> None:
        self._is_quick = not change.runs
        super()._write(tree, change)


@pytest.mark.parametrize("defect", Defective.__subclasses__(), ids=lambda defect: defect.__name__)
def test_defect_is_found(defect: type[Defective]) -> None:
    """By the test that is meant to."""
    assert find_failures(partial(MemoryFactory, defect), only=defect.found_by)
