"""Real servers, of which one copies the other: what each setting promises when the first one is gone, by a ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from uuid import uuid4

import msgspec
import pytest

import outlive
from outlive._features.fsck.checker import check_store
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.postgres import PostgresStore
from outlive.errors import RunNotFoundError, StoreUnavailableError
from outlive.events import RunSucceeded, StepSucceeded
from outlive.types import WorkerOptions
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.servers.proxy import Proxy
from tests.engine.inside import journal_of
from tests.postgres.support import in_time, through, until

pytestmark = [pytest.mark.every_store, pytest.mark.slow]

RUNS = 40
CALLERS = 8


@outlive.step(name="ledger.drawn")
async def drawn(number: int) -> str:
    """Another value each time, which says whose it is."""
    return f"{number}/{uuid4().hex}"


@outlive.workflow(name="ledger.entry")
async def entry(number: int) -> list[str]:
    """Draws twice, and sleeps between."""
    first = await drawn(number)
    await asyncio.sleep(0.05)
    return [first, await drawn(number)]


class Ledger:
    """The answers that callers have."""

    def __init__(self) -> None:
        self.started: set[int] = set()
        self.results: dict[int, list[str]] = {}
        self.missed: set[int] = set()
        self.halfway = asyncio.Event()

    async def call(self, engine: outlive.Engine, numbers: list[int]) -> None:
        """Start runs one after the other, and wait for each; again by its id when the store is away."""
        for number in numbers:
            while number not in self.results and number not in self.missed:
                with suppress(StoreUnavailableError):
                    try:
                        run = await engine.start(entry, number, id=f"entry-{number}")
                        self.started.add(number)
                        self.results[number] = await run.result()
                    except RunNotFoundError:
                        self.missed.add(number)
            if len(self.results) >= RUNS // 4:
                self.halfway.set()

    async def call_all(self, engine: outlive.Engine, first: int = 0) -> None:
        """Several callers at once."""
        parts = [list(range(first + caller, first + RUNS, CALLERS)) for caller in range(CALLERS)]
        await in_time(asyncio.gather(*(self.call(engine, part) for part in parts)))


@asynccontextmanager
async def working(url: str) -> AsyncIterator[outlive.Engine]:
    """A worker whose lease is short."""
    async with outlive.Engine(url, worker=WorkerOptions(lease_seconds=2), store_seconds=1) as engine:
        yield engine


@contextmanager
def closing_server(server: PostgresServer) -> Iterator[None]:
    """Remove a server in the end; it is started inside, on a thread, as others use the event loop meanwhile."""
    try:
        yield
    finally:
        server.remove()


async def has_beaten(server: PostgresServer, *, since: PostgresServer) -> bool:
    """Whether a lease was renewed after a copy was made: a store that goes back by less is not noticed as a whole."""
    leases = "SELECT max(expires_at) FROM outlive.workers"
    return server.execute(leases) != since.execute(leases)


async def has_noticed(engine: outlive.Engine) -> bool:
    """Whether an engine knows that its store is another one."""
    return engine.counters.store_changes > 0


def value_in(event: StepSucceeded) -> str:
    """What a step returned."""
    assert isinstance(event.result.v, msgspec.Raw)
    return msgspec.json.decode(event.result.v, type=str)


async def check(server: PostgresServer) -> dict[int, list[str]]:
    """The results. Each run has its own values, its result is what its steps returned, and fsck finds no problem."""
    found: dict[int, list[str]] = {}
    async with outlive.Engine(server.store_url(), worker=False) as engine:
        for view in await engine.list(limit=1_000):
            events = await journal_of(engine, view.id)
            values = [value_in(each) for each in events if isinstance(each, StepSucceeded)]
            number = int(view.id.removeprefix("entry-"))
            assert all(value.startswith(f"{number}/") for value in values), view.id
            if any(isinstance(each, RunSucceeded) for each in events):
                found[number] = await engine.get(view.id).result()
                assert found[number] == values
    store = PostgresStore(server.store_url(), clock=SystemClock().now)
    await store.open()
    try:
        assert await check_store(store) == []
    finally:
        await store.close()
    return found


async def test_synchronous_replica_that_takes_over_has_all_that_was_acknowledged() -> None:
    """The primary is killed under load, and the replica promoted: every start and every result is there as answered."""
    ledger = Ledger()
    with PostgresServer() as primary, PostgresServer(copy_of=primary) as replica:
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'replica'")
        primary.execute("SELECT pg_reload_conf()")
        with Proxy("127.0.0.1", primary.port) as proxy:
            async with working(through(proxy, primary.store_url())) as engine:
                calling = asyncio.create_task(ledger.call_all(engine))
                await in_time(ledger.halfway.wait())
                primary.kill()
                results, started = dict(ledger.results), set(ledger.started)
                await asyncio.to_thread(replica.promote)
                proxy.lead_to("127.0.0.1", replica.port)
                await calling
                await until(lambda: has_noticed(engine))
        found = await check(replica)

    assert ledger.missed == set()
    assert started <= ledger.started == set(found)
    assert results.items() <= ledger.results.items()
    assert found == ledger.results


@pytest.mark.parametrize("way", ["late replica", "restored backup"])
async def test_store_that_goes_back_under_load_takes_nothing_of_one_run_into_another(way: str) -> None:
    """The last moments are missing. Callers that wait get an error, what is started again begins again, journals
    lead to their results. A backup has the timeline of its server: there the beat notices it."""
    first, late, again = Ledger(), Ledger(), Ledger()
    with (
        PostgresServer() as primary,
        Proxy("127.0.0.1", primary.port) as link,
        Proxy("127.0.0.1", primary.port) as proxy,
    ):
        async with working(through(proxy, primary.store_url())) as engine:
            await first.call_all(engine)
            is_replica = way == "late replica"
            copy = PostgresServer(copy_of=primary, is_standby=is_replica, primary_port=link.port)
            with closing_server(copy):
                await asyncio.to_thread(copy.start)
                link.go_down()
                calling = asyncio.create_task(late.call_all(engine, first=RUNS))
                await in_time(late.halfway.wait())
                await until(lambda: has_beaten(primary, since=copy))
                primary.kill()
                if is_replica:
                    await asyncio.to_thread(copy.promote)
                proxy.lead_to("127.0.0.1", copy.port)
                await calling
                await again.call_all(engine, first=RUNS)
                await until(lambda: has_noticed(engine))
                found = await check(copy)

    assert first.results.items() <= found.items(), "what the copy has seen is as it was answered"
    assert again.missed == set()
    assert found == first.results | again.results
    lost = {number for number, answer in late.results.items() if found[number] != answer}
    assert lost, "the copy was not late, so this has shown nothing"


async def test_primary_that_some_still_reach_has_a_life_of_its_own() -> None:
    """It was not ended when the replica took over. Each side is whole; who comes over brings nothing along."""
    ledger, there = Ledger(), Ledger()
    with PostgresServer() as primary, PostgresServer(copy_of=primary) as replica:
        with Proxy("127.0.0.1", primary.port) as proxy:
            async with working(through(proxy, primary.store_url())) as engine:
                await ledger.call_all(engine)
                calling = asyncio.create_task(ledger.call_all(engine, first=RUNS))
                await asyncio.to_thread(replica.promote)
                async with working(replica.store_url()) as other:
                    await there.call_all(other, first=2 * RUNS)
                await calling
                proxy.lead_to("127.0.0.1", replica.port)
                proxy.cut_all()
                await ledger.call_all(engine, first=3 * RUNS)
                await until(lambda: has_noticed(engine))
        old, new = await check(primary), await check(replica)

    first = {number: ledger.results[number] for number in range(RUNS)}
    assert first.items() <= old.items()
    assert first.items() <= new.items()
    assert {
        number: answer for number, answer in ledger.results.items() if RUNS <= number < 2 * RUNS
    }.items() <= old.items()
    assert there.results.items() <= new.items()
    assert {number: answer for number, answer in ledger.results.items() if number >= 3 * RUNS}.items() <= new.items()


async def test_old_primary_of_a_synchronous_pair_acknowledges_nothing_more() -> None:
    """Its replica has taken over, so none confirms its commits: a start raises in time."""
    with PostgresServer() as primary, PostgresServer(copy_of=primary) as replica:
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'replica'")
        primary.execute("SELECT pg_reload_conf()")
        async with working(primary.store_url()) as engine:
            assert len(await in_time((await engine.start(entry, 0, id="entry-0")).result())) == 2
            await asyncio.to_thread(replica.promote)
            with pytest.raises(StoreUnavailableError):
                await in_time(engine.start(entry, 1, id="entry-1"))
        assert set(await check(replica)) == {0}
