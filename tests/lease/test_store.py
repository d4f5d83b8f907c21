"""Leases kept by a store keep their contract on every store."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from outlive._journal.event import RunClaimed
from outlive._lease.contract import OwnedBy
from outlive._lease.sessions import StoreLeases
from outlive._store.contract import Change, Claim, Outcome
from outlive._store.memory import MemoryState, MemoryStore
from outlive._store.postgres import PostgresStore
from outlive._store.sqlite import SqliteStore
from outlive.errors import NotOwnerError
from outlive.testing.clock import ManualClock
from outlive.testing.conformance import MemoryFactory, PersistentFactory, StoreFactory
from outlive.testing.conformance.builders import begin, claim, get_run, hire, read_events
from outlive.testing.conformance.leases import StoreLeasesConformance


class TestMemoryLeases(StoreLeasesConformance):
    """In memory."""

    @pytest.fixture
    def factory(self) -> StoreFactory:
        """A state of its own for each test."""
        return MemoryFactory()


class TestSqliteLeases(StoreLeasesConformance):
    """In a file, for the processes of one machine."""

    @pytest.fixture
    def factory(self, tmp_path: Path) -> StoreFactory:
        """A file of its own for each test."""
        return PersistentFactory(partial(SqliteStore, tmp_path / "test.db"))


class TestPostgresLeases(StoreLeasesConformance):
    """On a server, for a fleet."""

    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        """An empty schema for each test."""
        return PersistentFactory(partial(PostgresStore, postgres_url))


class SlowStore(MemoryStore):
    """In memory; others may do something between the reading of a verb and its commit."""

    meanwhile: Callable[[], Awaitable[object]] | None = None

    async def commit(self, changes: Sequence[Change]) -> list[tuple[Outcome, int]]:
        """See `Store`."""
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return await super().commit(changes)


async def test_of_two_who_acquire_at_once_one_gets_it() -> None:
    """Both saw that it was free; the later one is refused by the journal, looks again, and hears who was first."""
    store = SlowStore(clock=ManualClock(), state=MemoryState())
    leases = StoreLeases(store)
    for worker in ("worker-a", "worker-b"):
        await hire(store, worker)
    tree = await begin(store)
    first: list[Claim | OwnedBy | None] = []

    async def acquire_first() -> None:
        first.append(await leases.acquire("run-1", "worker-b"))

    store.meanwhile = acquire_first
    second = await leases.acquire("run-1", "worker-a")

    assert isinstance(first[0], Claim)
    assert isinstance(second, OwnedBy)
    assert second.owner == "worker-b" == (await get_run(store, "run-1")).owner
    assert 1 == sum(isinstance(event, RunClaimed) for event in await read_events(tree))


async def test_release_of_what_others_took_meanwhile_is_refused() -> None:
    """The session was ended and the run claimed by another worker, between the reading and the commit."""
    store = SlowStore(clock=ManualClock(), state=MemoryState())
    leases = StoreLeases(store)
    for worker in ("worker-a", "worker-b"):
        await hire(store, worker)
    await begin(store)
    await leases.acquire("run-1", "worker-a")

    async def take_over() -> None:
        await store.retire_worker("worker-a")
        assert await claim(store, "worker-b") == ["run-1"]

    store.meanwhile = take_over
    with pytest.raises(NotOwnerError, match="worker-b"):
        await leases.release("run-1", "worker-a")

    assert (await get_run(store, "run-1")).owner == "worker-b"
