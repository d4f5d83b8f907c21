"""Commits: one statement for a batch, and no change pays for another's conflict."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace

from outlive._kernel.model import Run
from outlive._kernel.store.contract import ItemResult, Outcome
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.batch import Batch
from outlive._kernel.store.postgres.commit import DEADLOCK_TRIES_MAX, Writing, commit
from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.query import statements
from outlive.errors import StoreUnavailableError
from outlive.events import RunParked, RunSucceeded, RunSuspended
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import (
    begin,
    blob,
    claim,
    created,
    get_run,
    hire,
    message,
    new_tree,
    read_names,
    send,
    stepped,
    value,
)
from tests.postgres.support import connected, count_statements, in_time, is_waiting_for_lock, until, writer_session


async def test_batch_of_rows_is_one_insert(store: PostgresStore) -> None:
    """No BEGIN, no COMMIT, no function."""
    trees = [await begin(store, f"run-{number}") for number in range(20)]
    changes = [tree.change(stepped(store), stepped(store)) for tree in trees]

    outcomes, sent = await count_statements(store, lambda: store.commit(changes))

    assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED] * 20
    assert len(sent) == 1
    assert sent[0].startswith("INSERT INTO")


async def test_batch_of_everything_is_one_statement(store: PostgresStore) -> None:
    """Events, rows, births, children, items, blobs, inboxes and messages."""
    trees = [await begin(store, f"run-{number}", worker="worker-a") for number in range(4)]
    await send(store, message(store, "run-0"))
    (inbound,) = (await store.read_inbox([trees[0].journal]))[trees[0].journal]
    changes = [
        trees[0].change(stepped(store), consumed=[inbound.id], blobs=[blob(b"x")]),
        trees[1].change(created(store, run=1, call="child", tags={"a": "b"})),
        trees[2].change(stepped(store), items=[ItemResult(run=0, index=0, result=value(1))]),
        trees[3].change(
            RunSuspended(at=store.now(), waits=(), wake_at=None),
            starts=[new_tree(store, "detached")],
            messages=[message(store, "run-0", "hello"), message(store, "missing")],
        ),
        new_tree(store, "new", tags={"c": "d"}),
    ]

    outcomes, sent = await count_statements(store, lambda: store.commit(changes))

    assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED] * 5
    assert len(sent) == 1
    assert await read_names(store, trees[0]) == ["hello"]
    assert (await store.find_runs(["detached", "new", "run-1~1"])).keys() == {"detached", "new", "run-1~1"}


async def test_start_of_a_taken_id_costs_no_second_statement(store: PostgresStore) -> None:
    """It is a normal answer, and the others of the batch are created."""
    await begin(store, "taken")
    changes = [new_tree(store, "first"), new_tree(store, "taken"), new_tree(store, "last")]

    outcomes, sent = await count_statements(store, lambda: store.commit(changes))

    assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED, Outcome.CONFLICT, Outcome.COMMITTED]
    assert len(sent) == 1


async def test_stale_changes_cost_the_others_two_statements(store: PostgresStore) -> None:
    """However many of a batch a paused worker lost: the ends of the journals explain them all."""
    trees = [await begin(store, f"run-{number}") for number in range(40)]
    changes = [tree.change(stepped(store)) for tree in trees]
    for tree in trees[::2]:
        await tree.step()

    outcomes, sent = await count_statements(store, lambda: store.commit(changes))

    assert [outcome for outcome, _ in outcomes] == [Outcome.CONFLICT, Outcome.COMMITTED] * 20
    assert len(sent) == 3


async def test_handles_are_asked_for_in_bulk(store: PostgresStore) -> None:
    """Starting a run is one statement, most of the time."""
    await begin(store, "first")

    _, sent = await count_statements(store, lambda: store.commit([new_tree(store, "second")]))

    assert len(sent) == 1


async def test_text_with_a_nul_comes_back(store: PostgresStore) -> None:
    """PostgreSQL has no such text, and Python has."""
    odd = "a\0b\1c\1\0b"
    tree = await begin(store, tags={odd: odd, "plain": "x"})
    await send(store, message(store, "run-1", odd, key=odd), message(store, "run-1", "again", key=odd))
    await tree.write(RunParked(at=store.now(), reason=odd))

    run = await get_run(store, "run-1")
    assert (run.tags, run.reason) == ({odd: odd, "plain": "x"}, odd)
    assert await read_names(store, tree) == [odd]


@pytest.mark.parametrize("first", ["mail", "suspending"])
async def test_message_that_crosses_with_suspending_wakes_the_run(
    store: PostgresStore, postgres_url: str, clock: ManualClock, first: str
) -> None:
    """The second waits for the first and sees it, though neither had committed when the other began."""
    await hire(store, "worker-a")
    tree = await begin(store, worker="worker-a")
    suspending = tree.change(RunSuspended(at=store.now(), waits=(), wake_at=None))
    inbox, sleep = Batch(()), Batch(())
    inbox.post([message(store, "run-1")])
    sleep.add(suspending)
    batch = inbox if first == "mail" else sleep
    sql = statements("place")["commit_changes"]
    async with connected(postgres_url) as one:
        transaction = one.transaction()
        await transaction.start()
        await one.execute(sql, *batch.values(now=clock(), channel=None))
        second = store.commit([suspending]) if first == "mail" else send(store, message(store, "run-1"))
        under_way = asyncio.ensure_future(second)
        await until(lambda: is_waiting_for_lock(one))
        await transaction.commit()
    await in_time(under_way)

    assert await claim(store, "worker-a") == ["run-1"]


async def test_child_that_is_born_in_the_last_change_moves_aside_with_its_tree(store: PostgresStore) -> None:
    """Continue-as-new in one change: a child, the end, the successor under the same id, and a child of that."""
    tree = await begin(store)
    old = get_runs_aside(tree.fold.root, "run-1~old")
    successor = new_tree(store, "run-1")
    successor.renames, successor.successor_of = [replace(run, journal=tree.journal) for run in old], tree.journal
    child = tree.change(created(store, run=1, call="child")).runs[-1]
    successor.runs = [*successor.runs, child]
    last = tree.change(
        created(store, run=1, call="child"), RunSucceeded(at=store.now(), result=value(1)), starts=[successor]
    )

    ((outcome, _),) = await store.commit([last])

    assert outcome is Outcome.COMMITTED
    found = await store.find_runs(["run-1", "run-1~1", "run-1~old", "run-1~old~1"])
    assert {run_id: run.journal == tree.journal for run_id, run in found.items()} == {
        "run-1": False,
        "run-1~1": False,
        "run-1~old": True,
        "run-1~old~1": True,
    }


def get_runs_aside(root: Run, run_id: str) -> list[Run]:
    """The rows of a tree with one child, under another id."""
    return [
        replace(root, id=run_id, root_id=run_id),
        replace(root, id=f"{run_id}~1", root_id=run_id, parent_id=run_id, number=1),
    ]


async def test_id_that_two_changes_of_a_batch_want_goes_to_the_first(store: PostgresStore) -> None:
    """Renames are written before births, but not at the price of the order."""
    tree = await begin(store, "old")
    await tree.succeed()
    newcomer = new_tree(store, "new")
    newcomer.renames = [replace(tree.fold.root, id="wanted", root_id="wanted", journal=tree.journal)]

    outcomes = await store.commit([new_tree(store, "wanted"), newcomer])

    assert [outcome for outcome, _ in outcomes] == [Outcome.COMMITTED, Outcome.CONFLICT]
    assert (await get_run(store, "old")).journal == tree.journal


async def test_change_whose_starts_need_one_id_twice_is_a_conflict(store: PostgresStore) -> None:
    """A change that starts a tree under an id and renames an ancestor to the same id is a conflict and writes
    nothing."""
    tree = await begin(store, "old")
    successor = new_tree(store, "old")
    successor.renames = [replace(tree.fold.root, id="wanted", root_id="wanted", journal=tree.journal)]
    successor.successor_of = tree.journal

    outcome = await tree.try_write(
        RunSucceeded(at=store.now(), result=value(1)), starts=[new_tree(store, "wanted"), successor]
    )

    assert outcome is Outcome.CONFLICT
    assert await store.find_run("wanted") is None
    assert (await get_run(store, "old")).journal == tree.journal


async def test_cancelled_commit_is_done_all_the_same(store: PostgresStore, postgres_url: str) -> None:
    """The caller stops waiting; the connection is not disturbed."""
    tree = await begin(store, worker="worker-a")
    change = tree.change(RunSuspended(at=store.now(), waits=(), wake_at=None))
    async with connected(postgres_url) as one:
        transaction = one.transaction()
        await transaction.start()
        await one.execute("SELECT FROM place.runs WHERE id = 'run-1' FOR UPDATE")
        under_way = asyncio.ensure_future(store.commit([change]))
        await until(lambda: is_waiting_for_lock(one))
        under_way.cancel()
        with pytest.raises(asyncio.CancelledError):
            await under_way
        await transaction.rollback()
    tree.seq += 1

    assert await tree.try_write(stepped(store)) is Outcome.COMMITTED
    assert (await get_run(store, "run-1")).owner == ""


async def test_opposite_orders_do_not_lock_each_other_out(store: PostgresStore, other: PostgresStore) -> None:
    """Messages to the same runs from both sides, in opposite orders, while the runs are let go of."""
    trees = [await begin(store, f"run-{number}", worker="worker-a") for number in range(10)]
    letting_go = [tree.change(RunSuspended(at=store.now(), waits=(), wake_at=None)) for tree in trees]
    messages = [message(store, tree.run_id) for tree in trees]

    await in_time(
        asyncio.gather(
            store.commit(letting_go), send(other, *messages[::-1]), send(store, *messages), send(other, *messages[::-1])
        )
    )

    for tree in trees:
        assert await read_names(store, tree) == ["go"] * 3


@pytest.mark.parametrize("failures", [DEADLOCK_TRIES_MAX - 1, DEADLOCK_TRIES_MAX])
async def test_commit_that_has_to_make_way_is_tried_again_a_few_times(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """The server chose it to end a deadlock, and nothing of it was written; a server that always does so is away."""
    tree = await begin(store)
    fetch, sent = Session.fetch, 0

    async def make_way(session: Session, name: str, *values: Any) -> Any:
        nonlocal sent
        if name == "commit_rows":
            sent += 1
            if sent <= failures:
                raise asyncpg.DeadlockDetectedError("deadlock detected")
        return await fetch(session, name, *values)

    monkeypatch.setattr(Session, "fetch", make_way)
    if failures < DEADLOCK_TRIES_MAX:
        await tree.step()
    else:
        with pytest.raises(StoreUnavailableError, match="deadlock"):
            await tree.step()

    assert sent == DEADLOCK_TRIES_MAX


async def test_handle_of_a_server_that_went_back_does_not_come_back(
    store: PostgresStore, other: PostgresStore, postgres_url: str
) -> None:
    """The sequence of such a server forgets which handles it gave out. No new journal gets a handle that a worker
    remembers."""
    remembered = [(await begin(store, f"run-{number}")).journal for number in range(6)]
    async with connected(postgres_url) as one:
        await one.execute("SELECT setval(pg_get_serial_sequence('place.runs', 'key'), 1, false)")

    tree = await begin(other, "another")

    assert tree.journal not in remembered


async def test_start_that_meets_a_taken_handle_takes_another_one(store: PostgresStore) -> None:
    """It is not the id that is taken."""
    taken = [(await begin(store, f"run-{number}")).journal for number in range(3)]
    session = await writer_session(store)

    ((outcome, journal),) = await commit(session, [new_tree(store, "another")], Writing(lambda: None, None, [*taken]))

    assert outcome is Outcome.COMMITTED
    assert journal == (await get_run(store, "another")).journal
    assert journal not in taken
