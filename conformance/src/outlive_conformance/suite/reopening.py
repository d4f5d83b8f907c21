"""Trees that go on after their end: `reopens` and `freed_keys`."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from outlive._kernel.journal.event import AnyEvent, RunFailed, RunRetried
from outlive._kernel.model import Failure, RunFilter, RunStatus
from outlive._kernel.store.contract import Answer, Change, Delivery, Outcome, Store
from outlive_conformance.suite.builders import (
    Writer,
    begin,
    claim,
    get_run,
    hire,
    message,
    read_message_ids,
    read_names,
    see_everything,
    send,
    stepped,
)
from outlive_conformance.suite.facet import Facet


class ReopeningConformance(Facet):
    """Only a change that says so follows the end of a tree, and only once."""

    async def test_ended_tree_goes_on(self, store: Store) -> None:
        """It is open again: it is claimed, takes messages and can end once more."""
        await hire(store, "worker-1")
        tree = await fail(store)

        assert await write(tree, reopening(tree, retried(store, timeout_at=99))) is Outcome.COMMITTED

        run = await get_run(store, "run-1")
        assert (run.status, run.failure, run.finished_at, run.timeout_at) == (RunStatus.PENDING, None, None, 99)
        assert await send(store, message(store, "run-1")) == [Delivery.ACCEPTED]
        assert await claim(store, "worker-1") == ["run-1"]
        await tree.catch_up()
        await tree.step("again")
        await tree.succeed()
        assert (await get_run(store, "run-1")).status is RunStatus.SUCCEEDED
        assert [run.id for run in await store.list_runs(RunFilter(statuses=(RunStatus.FAILED,)))] == []
        tree.seq += 1
        assert await tree.try_write(stepped(store)) is Outcome.CONFLICT

    async def test_children_go_on_with_it(self, store: Store) -> None:
        """Their rows are written with it."""
        tree = await begin(store)
        await tree.spawn(1)
        await tree.write(failed(store, run=1), failed(store))

        await write(tree, reopening(tree, retried(store), retried(store, run=1)))

        found = await store.find_runs(["run-1", "run-1~1"])
        assert {run_id: run.status.value for run_id, run in found.items()} == {"run-1": "pending", "run-1~1": "running"}

    async def test_open_tree_is_not_reopened(self, store: Store) -> None:
        """Nor is one that does not end where the writer thinks, and nothing of the change is written."""
        tree = await begin(store)
        before = await see_everything(store, tree)
        assert await write(tree, reopening(tree, retried(store))) is Outcome.CONFLICT
        assert await see_everything(store, tree) == before

        await tree.write(failed(store))
        stale = tree.twin()
        stale.seq -= 1
        before = await see_everything(store, tree)
        assert await write(stale, reopening(stale, retried(store))) is Outcome.CONFLICT
        assert await see_everything(store, tree) == before

    async def test_one_of_many_reopens(self, store: Store) -> None:
        """If several writers reopen a tree, all but the first find that another was first."""
        tree = await fail(store)
        changes = [reopening(tree, retried(store, reason=str(number))) for number in range(3)]
        outcomes = await asyncio.gather(*(store.commit([change]) for change in changes))
        assert sorted(outcome.value for ((outcome, _),) in outcomes) == ["committed", "conflict", "conflict"]

    async def test_reopening_does_not_touch_other_changes(self, store: Store) -> None:
        """A batch has changes that reopen and changes that do not, each with its outcome."""
        ended, other, third = await fail(store), await begin(store, "run-2"), await begin(store, "run-3")
        changes = [
            other.change(stepped(store)),
            reopening(third, retried(store)),
            reopening(ended, retried(store)),
        ]
        outcomes = [outcome for outcome, _ in await store.commit(changes)]
        assert outcomes == [Outcome.COMMITTED, Outcome.CONFLICT, Outcome.COMMITTED]

    async def test_former_owner_stays_out(self, store: Store) -> None:
        """A worker that was asleep while the tree ended and went on commits nothing."""
        tree = await begin(store)
        asleep = tree.twin()
        await tree.write(failed(store))
        await write(tree, reopening(tree, retried(store)))
        assert await asleep.try_write(stepped(store)) is Outcome.CONFLICT

    async def test_messages_and_keys_stay(self, store: Store) -> None:
        """All messages wait on, but for messages that the change consumes or frees."""
        tree = await begin(store)
        await send(store, *(message(store, "run-1", name, key=name) for name in ("kept", "freed", "consumed")))
        ids = await read_message_ids(store, tree)
        await tree.write(failed(store), consumed=[ids[1]])

        await write(tree, replace(reopening(tree, retried(store)), consumed=[ids[2]], freed_keys=["freed", "unknown"]))

        assert await read_names(store, tree) == ["kept"]
        again = [message(store, "run-1", name, key=name) for name in ("kept", "freed", "consumed")]
        assert await send(store, *again) == [Delivery.DUPLICATE, Delivery.ACCEPTED, Delivery.DUPLICATE]

    async def test_freed_key_loses_its_answer(self, store: Store) -> None:
        """The next message with that key is a new one, and has none yet."""
        tree = await begin(store)
        await send(store, message(store, "run-1", "first", key="freed"))
        await tree.write(failed(store), answers=[Answer(key="freed", failure=Failure(type="ValueError", message="no"))])

        await write(tree, replace(reopening(tree, retried(store)), freed_keys=["freed"]))

        assert await store.find_answers([("run-1", "freed")]) == {}
        await send(store, message(store, "run-1", "second", key="freed"))
        assert await store.find_answers([("run-1", "freed")]) == {("run-1", "freed"): None}


async def fail(store: Store) -> Writer:
    """A tree that has failed."""
    tree = await begin(store)
    await tree.write(failed(store))
    return tree


def failed(store: Store, run: int = 0) -> RunFailed:
    """A run fails now."""
    return RunFailed(at=store.now(), run=run, failure=Failure(type="ValueError", message="no"))


def retried(store: Store, run: int = 0, *, timeout_at: int | None = None, reason: str = "") -> RunRetried:
    """A run goes on now."""
    return RunRetried(at=store.now(), run=run, timeout_at=timeout_at, reason=reason)


def reopening(tree: Writer, *events: AnyEvent) -> Change:
    """The change that lets a tree go on with these events."""
    return replace(tree.change(*events), reopens=True)


async def write(tree: Writer, change: Change) -> Outcome:
    """Commit a change of a tree."""
    ((outcome, _),) = await tree.store.commit([change])
    return outcome
