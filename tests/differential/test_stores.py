"""Whatever is asked of them, all stores answer as the contract has it: random scripts against a small oracle."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from outlive._model import Run, RunFilter, RunStatus
from outlive._store.contract import Change, Claims, Delivery, Message, MessageKind, Store
from outlive._store.memory import MemoryStore, Tree
from outlive.testing.clock import ManualClock
from outlive.testing.differential import OPERATIONS_PER_EPISODE, STORES, OpenStore, find_difference, replay
from outlive.testing.differential.places import opener_on
from outlive.testing.differential.script import Letter, NewTree, Operation, Write
from outlive.testing.postgres import PostgresServer

OPERATIONS = 10_000
SHARES = 10
"""So many tests share the operations, so that a failure comes early."""
WORDS = (Operation, NewTree, Write, Letter, MessageKind, RunStatus)
SCRIPT_MAX = 12
"""No defect below needs more operations to be shown."""
EPISODES_MAX = 20
"""A planted defect must show in as many."""


@pytest.fixture
def stores(postgres_server: PostgresServer, postgres_database: str) -> dict[str, OpenStore]:
    """All stores, on the server of the tests."""
    return STORES | {"postgres": opener_on(postgres_server, postgres_database)}


@pytest.mark.parametrize("share", range(SHARES))
async def test_stores_agree_with_the_contract(stores: dict[str, OpenStore], share: int) -> None:
    """Answer by answer, and in everything that they show."""
    for number in range(OPERATIONS // OPERATIONS_PER_EPISODE // SHARES):
        difference = await find_difference(stores, f"{share}:{number}", OPERATIONS_PER_EPISODE)
        if difference is not None:
            raise difference


# -- The scripts find what is wrong --------------------------------------------------------------------------


class Defective(MemoryStore):
    """A store with one defect that only a strange mixture of operations shows."""


class SwallowsMail(Defective):
    """An heir loses what waited for a tree."""

    def _inherit(self, heir: Tree, ancestor: int) -> None:
        super()._inherit(heir, ancestor)
        if ancestor:
            heir.inbox = {}


class WakesLate(Defective):
    """Forgets mail when a run goes to sleep."""

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


class ForgetsChildrenOnLists(Defective):
    """Lists the children of a root only if nobody asks for their status."""

    async def list_runs(
        self,
        filter: RunFilter,  # noqa: A002 (the contract's name)
        *,
        limit: int = 100,
        before: tuple[int, str] | None = None,
    ) -> list[Run]:
        wanted = replace(filter, roots_only=True) if filter.statuses else filter
        return await super().list_runs(wanted, limit=limit, before=before)


class RevivesTheDead(Defective):
    """Lets a worker claim whose lease has run out."""

    async def claim_runs(self, worker_id: str, definitions: Sequence[str], **options: Any) -> Claims:
        if worker_id in self._state.workers and worker_id not in self._state.retired:
            self.extend_lease(worker_id, 0.001)
        return await super().claim_runs(worker_id, definitions, **options)


class CountsWrong(Defective):
    """Takes one message too many."""

    def _deliver(self, message: Message, *, inbox_messages_max: int | None) -> Delivery:
        return super()._deliver(message, inbox_messages_max=inbox_messages_max and inbox_messages_max + 1)


def opener(kind: type[MemoryStore]) -> OpenStore:
    """Opens stores of this kind."""

    @asynccontextmanager
    async def open_store(clock: ManualClock) -> AsyncIterator[Store]:
        yield kind(clock=clock)

    return open_store


@pytest.mark.parametrize("defect", Defective.__subclasses__(), ids=lambda defect: defect.__name__)
def test_defect_is_found_and_told_in_few_operations(defect: type[Defective]) -> None:
    """And the script that is printed shows it again."""
    stores = {"defective": opener(defect)}
    found = (asyncio.run(find_difference(stores, str(seed), OPERATIONS_PER_EPISODE)) for seed in range(EPISODES_MAX))
    difference = next(each for each in found if each is not None)

    assert len(difference.operations) <= SCRIPT_MAX
    assert difference.seed in str(difference)
    assert asyncio.run(replay(stores, difference.operations)) is not None
    assert asyncio.run(replay({"sound": opener(MemoryStore)}, difference.operations)) is None


async def test_store_that_raises_differs() -> None:
    """An exception is an answer, too, and the wrong one."""

    class Broken(MemoryStore):
        async def find_mail(self, worker_id: str) -> list[int]:
            raise ZeroDivisionError

    difference = await find_difference({"broken": opener(Broken)}, "0", 10)

    assert difference is not None
    assert "it failed: ZeroDivisionError()" in str(difference)


async def test_script_is_played_again_as_it_was_printed(stores: dict[str, OpenStore]) -> None:
    """What a failure prints is Python: it can be pasted into a test."""
    script = [
        Operation("commit", (NewTree(1, "a", tags={"size": "x"}),)),
        Operation("deliver", letters=(Letter("a", "m1", MessageKind.RESUME),), numbers=(2,)),
        Operation("commit", (Write(1, ("succeed",), consumed=("m1",)), NewTree(2, "a"))),
        Operation("list", ids=("a",), numbers=(2, 0, 0, 0, 0, 0), statuses=(RunStatus.SUCCEEDED,)),
    ]

    assert eval(repr(script), {kind.__name__: kind for kind in WORDS}) == script
    assert await replay(stores, script) is None
