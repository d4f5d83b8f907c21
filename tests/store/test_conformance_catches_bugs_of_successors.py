"""Planted defects in successors and transactions: each is found by the test that is meant to find it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import pytest
from msgspec.structs import replace

from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run
from outlive._kernel.model.payload import Blob
from outlive._kernel.store.contract import Change, Outcome
from outlive._kernel.store.memory import MemoryStore, Tree
from outlive._kernel.store.memory.transaction import MemoryTransaction
from outlive_conformance.suite import MemoryFactory, find_failures


class Defective(MemoryStore):
    """The oracle with one defect; says which test must find it."""

    found_by: ClassVar[str]


class LosesMessages(Defective):
    """A successor begins with an empty inbox."""

    found_by = "test_successor_has_the_messages_that_waited"

    def _inherit(self, successor: Tree, ancestor: int) -> None:
        """Take nothing over."""


class CopiesMessages(Defective):
    """The ended tree keeps what its successor was given."""

    found_by = "test_successor_has_the_messages_that_waited"

    def _inherit(self, successor: Tree, ancestor: int) -> None:
        inbox = dict(self._state.trees[ancestor].inbox) if ancestor in self._state.trees else {}
        super()._inherit(successor, ancestor)
        if ancestor in self._state.trees:
            self._state.trees[ancestor].inbox = inbox


class ForgetsInheritedKeys(Defective):
    """A successor takes a repeated message for a new one."""

    found_by = "test_successor_knows_the_keys_of_messages"

    def _inherit(self, successor: Tree, ancestor: int) -> None:
        super()._inherit(successor, ancestor)
        if ancestor:
            successor.keys = set()


class InheritsFromTheLiving(Defective):
    """Does not ask whether the tree has ended."""

    found_by = "test_tree_that_has_not_ended_keeps_its_messages"

    def _inherit(self, successor: Tree, ancestor: int) -> None:
        if (tree := self._state.trees.get(ancestor)) is not None:
            successor.inbox, tree.inbox = tree.inbox, {}
            successor.keys, tree.keys = tree.keys, set()


class InheritsFromChildren(Defective):
    """Gives the successor messages for runs that it does not have."""

    found_by = "test_message_to_a_child_is_not_inherited"

    def _inherit(self, successor: Tree, ancestor: int) -> None:
        super()._inherit(successor, ancestor)
        if ancestor in self._state.trees:
            successor.inbox |= self._state.trees[ancestor].inbox


class SleepsOverInheritedMessages(Defective):
    """Looks for messages before they are inherited."""

    found_by = "test_inherited_messages_make_the_successor_due"

    def _write(self, tree: Tree, change: Change) -> None:
        super()._write(tree, change)
        if change.successor_of:
            for run in change.runs:
                self._put_run(tree, run)


class EndsWithoutAnSuccessor(Defective):
    """Takes a successor for any other start."""

    found_by = "test_no_tree_ends_without_its_successor"

    def _commit(self, change: Change) -> tuple[Outcome, int]:
        starts = change.starts
        outcome = super()._commit(replace(change, starts=[]))
        for start in starts if outcome[0] is Outcome.COMMITTED else []:
            self._commit(start)
        return outcome


class PushesAside(Defective):
    """Gives an ended run an id that another one has."""

    found_by = "test_rename_to_a_taken_id_conflicts"

    def _find_writable(self, change: Change) -> Tree | None:
        targets = {run.id: self._state.runs.pop(run.id) for run in change.renames if run.id in self._state.runs}
        tree = super()._find_writable(change)
        self._state.runs.update(targets)
        return tree


class ForgetsWhatWasPublished(Defective):
    """Has no column for it."""

    found_by = "test_what_a_run_publishes_stays_in_its_row"

    def _put_run(self, tree: Tree, run: Run) -> None:
        super()._put_run(tree, replace(run, published=None))


class DropsBlobs(Defective):
    """Keeps only the blobs of changes."""

    found_by = "test_blobs_are_stored_by_themselves"

    async def put_blobs(self, blobs: Sequence[Blob]) -> None:
        """Say that all is well."""


class WritesHalfOfATransaction(Defective):
    """Judges each change of a transaction by itself."""

    found_by = "test_changes_of_a_transaction_are_all_or_nothing"

    def _commit_all(
        self, changes: Sequence[Change], behind: Row | None
    ) -> tuple[list[tuple[Outcome, int]], Callable[[], None]]:
        _, go_back = super()._commit_all([], None)
        return [self._commit(change) for change in changes], go_back


class LooksAtNumbersOnly(Defective):
    """Takes whatever stands at the right seq for what the change comes after."""

    found_by = "test_what_comes_after_a_change_that_was_refused_conflicts"

    def _commit_all(
        self, changes: Sequence[Change], behind: Row | None
    ) -> tuple[list[tuple[Outcome, int]], Callable[[], None]]:
        del behind
        return super()._commit_all(changes, None)


class CommitsForAZombie(Defective):
    """Commits the user's part whatever becomes of the journal's."""

    found_by = "test_conflict_leaves_nothing_of_the_step"

    async def begin(self, *, seconds_max: float = 30.0) -> MemoryTransaction:
        transaction = await super().begin(seconds_max=seconds_max)
        transaction.finish = partial(_end_with_a_commit, transaction)  # type: ignore[method-assign]
        return transaction


class RemembersRollbacks(Defective):
    """Rolls back by doing nothing, and the next one commits."""

    found_by = "test_rolled_back_transaction_leaves_nothing"

    async def begin(self, *, seconds_max: float = 30.0) -> MemoryTransaction:
        transaction = await super().begin(seconds_max=seconds_max)
        transaction.abandon = partial(_end_with_a_commit, transaction, statement="")  # type: ignore[method-assign]
        return transaction


class LetsAStepCommit(Defective):
    """Has no guard."""

    found_by = "test_step_cannot_end_its_transaction"

    async def begin(self, *, seconds_max: float = 30.0) -> MemoryTransaction:
        transaction = await super().begin(seconds_max=seconds_max)
        connection = self._state.tables.connection
        execute = transaction.handle.execute

        async def unguarded(query: str, /, *args: object) -> str:
            if query.strip(" ;").upper() in {"COMMIT", "ROLLBACK", "BEGIN"}:
                connection.execute(query)
                return query
            return await execute(query, *args)

        transaction.handle.execute = unguarded  # type: ignore[method-assign]
        return transaction


def _end_with_a_commit(transaction: MemoryTransaction, reason: str, statement: str) -> None:
    MemoryTransaction.finish(transaction, reason, "COMMIT")


@pytest.mark.parametrize("defect", Defective.__subclasses__(), ids=lambda defect: defect.__name__)
def test_defect_is_found(defect: type[Defective]) -> None:
    """By the test that is meant to."""
    assert find_failures(partial(MemoryFactory, defect), only=defect.found_by)
