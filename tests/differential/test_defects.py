"""The scripts find what is wrong: a store with one planted defect differs, and the script that shows it is short."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from outlive._kernel.journal.checkpoint import CheckpointRow
from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run, RunFilter
from outlive._kernel.store.contract import (
    Action,
    Answer,
    CellChange,
    Change,
    Claims,
    Delivery,
    Forgotten,
    Message,
    MessageRefusal,
    Outcome,
    Store,
)
from outlive._kernel.store.memory import MemoryStore, Tree
from outlive._kernel.store.streams import Appended, StreamAppend, StreamLimits, StreamState
from outlive.testing.clock import ManualClock
from proof.differential import OPERATIONS_PER_EPISODE, OpenStore, find_difference, replay

SCRIPT_MAX = 12
"""No defect below needs more operations to be shown."""
EPISODES_MAX = 20
"""A planted defect must show in as many."""
FIRST = {
    "ComparesNoOutputs": 4,
    "CountsRows": 5,
    "ForgetsChildrenOnLists": 31,
    "KeepsMailOfTheForgotten": 7,
    "RepeatsWhatComesLate": 17,
}
"""The episode to begin with: it showed the defect when this was written, and those before it did not."""
T = TypeVar("T")


class Defective(MemoryStore):
    """A store with one defect that only a strange mixture of operations shows."""


class SwallowsMail(Defective):
    """A successor loses what waited for a tree."""

    def _inherit(self, successor: Tree, ancestor: int) -> None:
        super()._inherit(successor, ancestor)
        if ancestor:
            successor.inbox = {}


class WakesLate(Defective):
    """Forgets messages when a run goes to sleep."""

    def _write(self, tree: Tree, change: Change) -> None:
        super()._write(tree, change)
        for run in change.runs:
            if run.number == 0:
                self._put_run(tree, run)


class RenamesTheLiving(Defective):
    """Pushes a run aside that has not ended."""

    def _list_renames(self, change: Change) -> list[Run]:
        trees = self._state.trees
        return [run for run in change.renames if run.journal in trees and run.number in trees[run.journal].runs]


class AppendsBehindAnyRow(Defective):
    """Looks at the seq of the last row, and not at whose row it is."""

    def _find_writable(self, change: Change) -> Tree | None:
        tree = self._state.trees.get(change.journal)
        return super()._find_writable(replace(change, prior=tree.rows[-1][2] if tree else None))


class ForgetsChildrenOnLists(Defective):
    """Lists the children of a root only if the search does not ask for a status."""

    async def list_runs(
        self,
        filter: RunFilter,  # noqa: A002 (the contract's name)
        **options: Any,
    ) -> list[Run]:
        wanted = replace(filter, roots_only=True) if filter.statuses else filter
        return await super().list_runs(wanted, **options)


class RevivesTheDead(Defective):
    """Lets a worker claim whose lease has run out."""

    async def claim_runs(self, worker_id: str, definitions: Sequence[str], **options: Any) -> Claims:
        if worker_id in self._state.workers and worker_id not in self._state.retired:
            self.extend_lease(worker_id, 0.001, renewed=0)
        return await super().claim_runs(worker_id, definitions, **options)


class CountsWrong(Defective):
    """Takes one message too many."""

    def _deliver(self, message: Message, *, inbox_messages_max: int) -> Delivery:
        return super()._deliver(message, inbox_messages_max=inbox_messages_max + 1)


class TrustsTransactions(Defective):
    """Does not look at the row that a transaction comes after."""

    def _commit_all(
        self, changes: Sequence[Change], behind: Row | None
    ) -> tuple[list[tuple[Outcome, int]], Callable[[], None]]:
        return super()._commit_all(changes, None)


# -- Journals that forget ------------------------------------------------------------------------------------


class KeepsEvents(Defective):
    """Forgets children alone."""

    def _forget(self, tree: Tree, forgotten: Forgotten) -> None:
        super()._forget(tree, replace(forgotten, before=0))


class KeepsMailOfTheForgotten(Defective):
    """Keeps the inbox of a tree that was forgotten, which no run is left to read."""

    def _forget(self, tree: Tree, forgotten: Forgotten) -> None:
        inbox = tree.inbox
        super()._forget(tree, forgotten)
        tree.inbox = inbox


class KeepsItemsOfTheForgotten(Defective):
    """Only a checker can see them."""

    def _forget(self, tree: Tree, forgotten: Forgotten) -> None:
        items = tree.items
        super()._forget(tree, forgotten)
        tree.items = items


class ForgetsOneTooMany(Defective):
    """Also the child whose number is named."""

    def _forget(self, tree: Tree, forgotten: Forgotten) -> None:
        super()._forget(tree, replace(forgotten, below=forgotten.below + 1))


class ForgetsForALoser(Defective):
    """Before it knows whether the change can be written."""

    def _find_writable(self, change: Change) -> Tree | None:
        tree = self._state.trees.get(change.journal)
        if tree is not None and change.forgets is not None and change.forgets.before <= tree.rows[-1][0]:
            self._forget(tree, change.forgets)
        return super()._find_writable(change)


class CountsRows(Defective):
    """Takes the number of rows for the place where a journal ends, so that a writer passes whose event is gone."""

    def _find_writable(self, change: Change) -> Tree | None:
        tree = self._state.trees.get(change.journal)
        if tree is not None and tree.rows[0][0] and len(tree.rows) == change.after + 1 and not tree.is_over:
            return tree
        return super()._find_writable(change)


class TrustsGuards(Defective):
    """Lets a guarded change pass that comes too late, and drops what came before it."""

    def _find_writable(self, change: Change) -> Tree | None:
        tree = self._state.trees.get(change.journal)
        if tree is not None and change.is_guarded and not tree.is_over:
            tree.rows = [row for row in tree.rows if row[0] <= change.after] or tree.rows
        return super()._find_writable(change)


# -- Answers, streams, watches, and trees that go on after their end -----------------------------------------


class AnswersAgain(Defective):
    """The last answer counts."""

    def _answer(self, tree: Tree, answers: Sequence[Answer]) -> None:
        for answer in answers:
            tree.answers.pop(answer.key, None)
        super()._answer(tree, answers)


class RefusesForOthers(Defective):
    """Does not look at who owns the tree."""

    async def refuse_messages(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        for refusal in refusals:
            tree = self._state.active.get(refusal.journal)
            await super().refuse_messages(tree.root.owner if tree else worker_id, [refusal])


class RepeatsWhatComesLate(Defective):
    """Compares an append with the last one only."""

    def _judge_append(self, append: StreamAppend, limits: StreamLimits) -> Appended:
        tree = self._state.trees.get(append.journal)
        stream = tree.streams.get((append.said.run, append.said.name)) if tree else None
        if stream is not None and append.mark < stream.state.mark:
            position, items, size, _, number, tail, tail_bytes, head = stream.state
            stream.state = StreamState(position, items, size, 0, number, tail, tail_bytes, head)
        return super()._judge_append(append, limits)


class SendsNoEnds(Defective):
    """A watcher waits for ever."""

    def _send_ends(self, change: Change) -> None:
        pass


class ReopensTheLiving(Defective):
    """Does not look whether a tree has ended."""

    def _find_writable(self, change: Change) -> Tree | None:
        return super()._find_writable(replace(change, reopens=False) if change.reopens else change)


# -- Trees that are deleted ----------------------------------------------------------------------------------


class DeletesWhatIsNeeded(Defective):
    """Everything that has ended goes."""

    async def delete_trees(
        self, journals: Sequence[int], *, ended_before: int, audit: Mapping[int, Action] | None = None
    ) -> list[int]:
        gone = await super().delete_trees(journals, ended_before=ended_before)
        for journal in {*journals} - {*gone}:
            tree = self._state.trees.get(journal)
            if tree is not None and tree.is_over and (tree.root.finished_at or 0) < ended_before:
                del self._state.trees[journal]
                for run in tree.runs.values():
                    del self._state.runs[run.id]
                gone.append(journal)
        return gone


class DeletesTheYoung(Defective):
    """Does not look when a tree ended."""

    async def delete_trees(
        self, journals: Sequence[int], *, ended_before: int, audit: Mapping[int, Action] | None = None
    ) -> list[int]:
        return await super().delete_trees(journals, ended_before=self.now() + 1)


# -- Cells ---------------------------------------------------------------------------------------------------


class KeepsWhatWasRefused(Defective):
    """Makes a cell for a change that raises."""

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        try:
            return await super().change_cell(name, change)
        except Exception:
            self._state.cells.setdefault(name, b"")
            raise


class LosesAChange(Defective):
    """Lets others change a cell while it does."""

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        after, answer = change(self._state.cells.get(name), self.now())
        await asyncio.sleep(0)
        self._state.cells[name] = after or b""
        return answer


class TakesCellsForOne(Defective):
    """Does not see a blank at the end of a name."""

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        return await super().change_cell(name.rstrip(), change)


class MakesEmptyCellsNew(Defective):
    """Takes no bytes for none."""

    async def change_cell(self, name: str, change: CellChange[T], *, audit: Action | None = None) -> T:
        return await super().change_cell(name, lambda data, now_at: change(data or None, now_at))


# -- Checkpoints ---------------------------------------------------------------------------------------------


class WritesOverCheckpoints(Defective):
    """The last one has the sequence."""

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        is_there = await super().append_checkpoint(run_id, row)
        self._state.checkpoints[run_id][row[0]] = row
        return is_there


class RefusesTheSameCheckpoint(Defective):
    """A caller that lost the answer never learns that the row is there."""

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        is_there = row[0] in self._state.checkpoints.get(run_id, {})
        return await super().append_checkpoint(run_id, row) and not is_there


class ComparesNoOutputs(Defective):
    """Takes a row for the very same that has another output."""

    async def append_checkpoint(self, run_id: str, row: CheckpointRow) -> bool:
        there = self._state.checkpoints.get(run_id, {}).get(row[0])
        is_alike = there is not None and there[3] == row[3]
        return await super().append_checkpoint(run_id, row) or is_alike


class ReadsCheckpointsAsTheyCame(Defective):
    """In no order."""

    async def read_checkpoints(self, run_id: str) -> list[CheckpointRow]:
        return list(self._state.checkpoints.get(run_id, {}).values())


class ClearsTooMuch(Defective):
    """Also runs whose id begins with the same letter."""

    async def clear_checkpoints(self, run_id: str) -> None:
        for each in [each for each in self._state.checkpoints if each.startswith(run_id)]:
            await super().clear_checkpoints(each)


def opener(kind: type[MemoryStore]) -> OpenStore:
    """Opens stores of this kind."""

    @asynccontextmanager
    async def open_store(clock: ManualClock) -> AsyncIterator[Store]:
        yield kind(clock=clock)

    return open_store


@pytest.mark.parametrize("defect", Defective.__subclasses__(), ids=lambda defect: defect.__name__)
def test_defect_is_found_and_shown_in_few_operations(defect: type[Defective]) -> None:
    """A planted defect is found, and the short script that is printed shows it again."""
    stores = {"defective": opener(defect)}
    first = FIRST.get(defect.__name__, 0)
    seeds = map(str, range(first, first + EPISODES_MAX))
    found = (asyncio.run(find_difference(stores, seed, OPERATIONS_PER_EPISODE)) for seed in seeds)
    difference = next(each for each in found if each is not None)

    assert len(difference.operations) <= SCRIPT_MAX
    assert difference.seed in str(difference)
    assert asyncio.run(replay(stores, difference.operations)) is not None
    assert asyncio.run(replay({"sound": opener(MemoryStore)}, difference.operations)) is None


async def test_store_that_raises_differs() -> None:
    """An exception is an answer, too, and the wrong one."""

    class Broken(MemoryStore):
        async def find_inboxes(self, worker_id: str) -> list[int]:
            raise ZeroDivisionError

    difference = await find_difference({"broken": opener(Broken)}, "0", 10)

    assert difference is not None
    assert "it failed: ZeroDivisionError()" in str(difference)
