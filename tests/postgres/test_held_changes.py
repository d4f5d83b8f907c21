"""What a store answers to changes that want an id which a user's open transaction holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from msgspec.structs import replace

from outlive._journal.event import RunSuspended
from outlive._model import RunFilter
from outlive._store.contract import Change, Delivery, Outcome
from outlive._store.postgres import PostgresStore, held, transaction
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.testing.clock import ManualClock
from outlive.testing.conformance.builders import (
    Writer,
    begin,
    blob,
    created,
    get_run,
    message,
    new_tree,
    read_names,
    stepped,
)
from tests.postgres.support import connected, count_statements, in_time, is_waiting_for_lock, plain, until

PACE_SECONDS = 2.0
"""Within which a commit that waits for nobody is over, also on a busy machine."""
WAYS_OUT = [("commit", Outcome.CONFLICT), ("rollback", Outcome.COMMITTED)]
"""Of a user's transaction that has started a run, and what becomes of a plain start of the same id."""


@asynccontextmanager
async def joined(store: PostgresStore, url: str, *changes: Change) -> AsyncIterator[Any]:
    """The same, for a store."""
    async with connected(url) as connection:
        transaction = connection.transaction()
        await transaction.start()
        for change in changes:
            assert await store.join(connection, change) is Outcome.COMMITTED
        yield transaction


async def outcomes_of(store: PostgresStore, *changes: Change) -> list[Outcome]:
    """What becomes of changes, in time."""
    async with asyncio.timeout(PACE_SECONDS):
        return [outcome for outcome, _ in await store.commit(changes)]


@pytest.mark.parametrize(("way_out", "outcome"), WAYS_OUT)
async def test_only_what_wants_a_held_id_is_held(
    store: PostgresStore, postgres_url: str, way_out: str, outcome: Outcome
) -> None:
    """The others are written at once. It is free when the transaction is over, whichever way."""
    tree = await begin(store, "old")
    changes = [new_tree(store, "held"), tree.change(stepped(store)), new_tree(store, "new"), new_tree(store, "held")]
    async with joined(store, postgres_url, new_tree(store, "held")) as user:
        committed = [Outcome.HELD, Outcome.COMMITTED, Outcome.COMMITTED, Outcome.HELD]
        assert await outcomes_of(store, *changes) == committed
        assert await store.find_free([changes[0]]) == []
        assert await outcomes_of(store, changes[0]) == [Outcome.HELD]

        await getattr(user, way_out)()

        assert await store.find_free([changes[0], changes[3]]) == [0, 1]
        assert await outcomes_of(store, changes[0], changes[3]) == [outcome, Outcome.CONFLICT]


async def test_held_id_that_is_known_costs_no_statement(store: PostgresStore, postgres_url: str) -> None:
    """A thousand starts of it are answered out of hand."""
    starts = [new_tree(store, "held") for _ in range(1000)]
    async with joined(store, postgres_url, new_tree(store, "held")):
        assert await outcomes_of(store, starts[0]) == [Outcome.HELD]

        outcomes, sent = await count_statements(store, lambda: outcomes_of(store, *starts))

        assert outcomes == [Outcome.HELD] * 1000
        assert sent == []


async def test_looking_leaves_nothing_behind(store: PostgresStore, postgres_url: str) -> None:
    """Neither runs nor locks: ids that were looked for are free for everybody, also while others look."""
    wanted = [new_tree(store, id_) for id_ in ("held", "free", "taken")]
    await store.commit([new_tree(store, "taken")])
    before = await store.list_runs(RunFilter())
    async with joined(store, postgres_url, wanted[0]), connected(postgres_url) as looker:
        assert await store.find_free(wanted) == [1, 2]

        assert await store.list_runs(RunFilter()) == before
        assert await outcomes_of(store, *wanted) == [Outcome.HELD, Outcome.COMMITTED, Outcome.CONFLICT]
        assert not await is_waiting_for_lock(looker)


@pytest.mark.parametrize("way_out", ["commit", "rollback"])
async def test_change_with_a_start_that_is_held_is_held(store: PostgresStore, postgres_url: str, way_out: str) -> None:
    """An id that turns out to be taken is left as it is; what the tree said is written in any case, and only then."""
    tree = await begin(store, "old")
    change = tree.change(stepped(store), starts=[new_tree(store, "other"), new_tree(store, "held", tags={"a": "b"})])
    tree.seq += 1
    next_one = tree.change(stepped(store))
    async with joined(store, postgres_url, new_tree(store, "held")) as user:
        assert await outcomes_of(store, change, next_one) == [Outcome.HELD, Outcome.HELD]
        assert len(await store.read_journal(tree.journal)) == 1

        await getattr(user, way_out)()

        assert await store.find_free([change, next_one]) == [0, 1]
        assert await outcomes_of(store, change, next_one) == [Outcome.COMMITTED, Outcome.COMMITTED]
    assert (await get_run(store, "held")).tags == ({} if way_out == "commit" else {"a": "b"})
    await get_run(store, "other")


async def test_heir_and_rename_that_are_held_are_held(store: PostgresStore, postgres_url: str) -> None:
    """Whatever takes an id: a child, a run that makes room for another one, the one that it makes room for."""
    old, ended = await begin(store, "old"), await begin(store, "ended")
    await ended.succeed()
    row = await get_run(store, "ended")
    heir = replace(new_tree(store, "ended"), heir_of=ended.journal, renames=[replace(row, id="held", root_id="held")])
    child = old.change(created(store, run=1, call="child"))
    held = [new_tree(store, "held"), new_tree(store, child.runs[0].id)]
    async with joined(store, postgres_url, *held) as user:
        assert await outcomes_of(store, heir, child) == [Outcome.HELD, Outcome.HELD]
        assert (await get_run(store, "ended")).journal == ended.journal

        await user.rollback()

        assert await store.find_free([heir, child]) == [0, 1]
        assert await outcomes_of(store, heir, child) == [Outcome.COMMITTED, Outcome.COMMITTED]


async def test_writer_that_lost_its_tree_is_not_held(store: PostgresStore, postgres_url: str) -> None:
    """It conflicts, whatever it wants: it must not keep the tree from its new owner."""
    tree = await begin(store, "old")
    stale = tree.change(stepped(store), starts=[new_tree(store, "held")])
    await tree.step()
    async with joined(store, postgres_url, new_tree(store, "held")):
        assert await outcomes_of(store, stale, new_tree(store, "held")) == [Outcome.CONFLICT, Outcome.HELD]
        assert await outcomes_of(store, stale, new_tree(store, "new")) == [Outcome.CONFLICT, Outcome.COMMITTED]


async def test_changes_that_are_written_carefully_are_held_alone(store: PostgresStore, postgres_url: str) -> None:
    """Two new trees of one id cannot be written at once: each change is looked at."""
    twins = [new_tree(store, "twin"), new_tree(store, "twin")]
    tree = await begin(store, "old")
    starting = tree.change(stepped(store), starts=[new_tree(store, "held")])
    tree.seq += 1
    held = [starting, tree.change(stepped(store)), new_tree(store, "held")]
    async with joined(store, postgres_url, new_tree(store, "held")):
        outcomes = await outcomes_of(store, *twins, *held, new_tree(store, "new"))

    assert outcomes == [Outcome.COMMITTED, Outcome.CONFLICT, *[Outcome.HELD] * 3, Outcome.COMMITTED]
    assert len(await store.read_journal(tree.journal)) == 1


async def test_equal_blob_in_an_open_transaction_holds_nobody(store: PostgresStore, postgres_url: str) -> None:
    """Blobs have no owner: two runs with the same large input have nothing to do with each other."""
    mine, theirs = new_tree(store, "mine"), new_tree(store, "theirs")
    mine.blobs, theirs.blobs = [blob(b"large")], [blob(b"large")]
    async with joined(store, postgres_url, theirs):
        assert await outcomes_of(store, mine) == [Outcome.COMMITTED]
        async with asyncio.timeout(PACE_SECONDS):
            await store.put_blobs([blob(b"large")])


@pytest.mark.parametrize(("way_out", "runs"), [("commit", 1), ("rollback", 2)])
async def test_delivery_with_a_start_that_is_held_waits(
    store: PostgresStore, postgres_url: str, way_out: str, runs: int
) -> None:
    """The message goes to whichever run there is in the end, and so does one that starts more than a run."""
    plain_start = new_tree(store, "held")
    with_more = replace(new_tree(store, "held"), starts=[new_tree(store, "more")])
    async with joined(store, postgres_url, new_tree(store, "held")) as user:
        deliveries = [
            asyncio.ensure_future(store.deliver([message(store, "held")], start=start, inbox_messages_max=10))
            for start in (plain_start, with_more)
        ]
        async with connected(postgres_url) as looker:
            await until(lambda: has_looked(store))
            assert not any(delivery.done() for delivery in deliveries)
            assert await looker.fetchval("SELECT count(*) FROM place.runs") == 0
        await getattr(user, way_out)()

        assert await in_time(asyncio.gather(*deliveries)) == [[Delivery.ACCEPTED]] * 2
    tree = Writer(store, "held")
    tree.journal = (await get_run(store, "held")).journal
    assert await read_names(store, tree) == ["go", "go"]
    assert len(await store.list_runs(RunFilter())) <= runs


async def has_looked(store: PostgresStore) -> bool:
    """Whether the store has found out that an id is held."""
    return bool(store._writing.held)


async def test_transaction_of_a_step_gives_up_on_a_held_id(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it was written, and its tree was not locked while it waited."""
    monkeypatch.setattr(transaction, "HELD_SECONDS_MAX", 0.05)
    tree = await begin(store, "old")
    change = tree.change(stepped(store), starts=[new_tree(store, "held")])
    async with joined(store, postgres_url, new_tree(store, "held")):
        with pytest.raises(StoreUnavailableError, match="holds the id"):
            await in_time((await store.begin()).commit([change]))

        assert await outcomes_of(store, tree.change(stepped(store))) == [Outcome.COMMITTED]


async def test_patience_ends_with_the_statement(store: PostgresStore) -> None:
    """A step's transaction keeps the time-out of its own for its own locks."""
    tree = await begin(store, "old")
    step = await store.begin()
    await step.handle.execute("SET LOCAL lock_timeout = '7s'")
    noted = []
    session = step._session
    assert session is not None
    run = session.run

    async def noting(statement: str) -> None:
        if statement == "COMMIT":
            noted.append(await session.connection.fetchval("SHOW lock_timeout"))
        await run(statement)

    session.run = noting  # type: ignore[method-assign]
    await step.commit([tree.change(stepped(store), starts=[new_tree(store, "other")])])

    assert noted == ["7s"]


async def test_held_ids_behind_a_pooler(pgbouncer_url: str, postgres_server: Any, postgres_place: str) -> None:
    """Its sessions have no settings of ours."""
    store = PostgresStore(pgbouncer_url, clock=ManualClock())
    await store.open()
    user = await asyncpg.connect(plain(postgres_server.url(postgres_place)))
    async with user.transaction():
        await store.join(user, new_tree(store, "held"))
        outcomes = await outcomes_of(store, new_tree(store, "held"), new_tree(store, "new"))
        assert outcomes == [Outcome.HELD, Outcome.COMMITTED]
    assert await store.find_free([new_tree(store, "held")]) == [0]
    assert await outcomes_of(store, new_tree(store, "held")) == [Outcome.CONFLICT]
    await user.close()
    await store.close()


async def test_ids_that_were_held_are_not_remembered_for_ever(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that lives for years does not grow by one for every id that it once had to wait for."""
    monkeypatch.setattr(held, "HELD_MAX", 2)
    starts = [new_tree(store, f"held-{number}") for number in range(4)]
    async with joined(store, postgres_url, *starts):
        for number, start in enumerate(starts, 1):
            assert await outcomes_of(store, start) == [Outcome.HELD]
            assert len(store._writing.held) == (number if number <= 3 else 1)


async def test_lock_of_an_administrator_is_an_outage_and_no_held_id(store: PostgresStore, postgres_url: str) -> None:
    """Whoever waits for an id asks again and again; here there is none to wait for."""
    tree, in_step = await begin(store), await begin(store, "run-2")
    assert store._writer is not None
    session = await store._writer.take()
    await session.run("SET lock_timeout = '10ms'")
    store._writer.give(session)
    transaction = await store.begin()
    await transaction.handle.execute("SET LOCAL lock_timeout = '10ms'")
    suspended = RunSuspended(at=store.now(), waits=(), wake_at=None)
    async with connected(postgres_url) as administrator, administrator.transaction():
        await administrator.execute("LOCK TABLE place.runs IN EXCLUSIVE MODE")

        for commit, writer in ((store.commit, tree), (transaction.commit, in_step)):
            with pytest.raises(StoreUnavailableError) as caught:
                await commit([writer.change(suspended)])
            assert not isinstance(caught.value, CommitUnknownError)

    for writer in (tree, in_step):
        assert await writer.try_write(suspended) is Outcome.COMMITTED


async def test_pauses_become_longer_and_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is not asked all the time, and a transaction does not keep its locks for ever."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(held, "PAUSE_FIRST_SECONDS", 0.25)
    monkeypatch.setattr(held, "PAUSE_MAX_SECONDS", 0.75)
    pauses, endless = held.Pauses(1.5), held.Pauses()
    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "sleep", sleep)
        while not pauses.is_over:
            await pauses.pause()
        for _ in range(5):
            await endless.pause()

    assert slept == [0.25, 0.5, 0.75, 0.25, 0.5, 0.75, 0.75, 0.75]
    assert not endless.is_over
