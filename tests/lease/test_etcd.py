"""Leases in a real etcd: the contract, who is taken for lost, and what is heard of it."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from outlive._kernel.lease.contract import Leases
from outlive._kernel.lease.etcd import EtcdLeases, parse_address
from outlive._kernel.lease.process import this_process
from outlive._kernel.lease.sessions import NoLeases, StoreLeases
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store, WorkerInfo
from outlive._kernel.store.postgres import PostgresStore
from outlive.errors import StoreUnavailableError
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.etcd import EtcdServer
from outlive_conformance.suite import MemoryFactory, PersistentFactory, StoreFactory
from outlive_conformance.suite.builders import begin
from outlive_conformance.suite.leases import LeasesConformance
from tests.lease.conftest import Opener
from tests.lease.fleet import (
    HEARING_SECONDS,
    SHORT_SECONDS,
    Bell,
    JumpingClock,
    claim,
    enlist,
    lost,
    renew,
    take_over_the_lost,
)

GONE = f"{this_process()}7"
"""The name of a process that is not there."""


class EtcdLeasesConformance(LeasesConformance):
    """The contract of all leases."""

    @pytest.fixture
    async def leases(self, store: Store, etcd_url: str) -> AsyncIterator[Leases]:
        """In etcd, at an empty place."""
        leases = EtcdLeases(store, parse_address(etcd_url), clock=SystemClock())
        await leases.open()
        yield leases
        await leases.close()
        await leases.close()


class TestEtcdLeasesOnMemory(EtcdLeasesConformance):
    """With sessions in memory."""

    @pytest.fixture
    def factory(self) -> StoreFactory:
        """A state of its own for each test."""
        return MemoryFactory()


class TestEtcdLeasesOnPostgres(EtcdLeasesConformance):
    """With sessions on a server, for a fleet."""

    @pytest.fixture
    def factory(self, postgres_url: str) -> StoreFactory:
        """An empty schema for each test."""
        return PersistentFactory(partial(PostgresStore, postgres_url))


# -- Who is lost -------------------------------------------------------------------------------------------------------


async def test_worker_that_beats_no_more_is_heard_of_and_its_run_claimed(
    store: Store, etcd_url: str, open_leases: Opener
) -> None:
    """Its keep-alive is killed: the watch rings, its run is an orphan, and another one has it. [SF-L12 FE-P14]"""
    dying, watcher = await open_leases(etcd_url), await open_leases(etcd_url)
    bell = Bell()
    watcher.watch(bell.ring)
    await bell.wait()  # It listens.
    await enlist(watcher, "watcher")
    await enlist(dying, "dying", lease_seconds=SHORT_SECONDS)
    await begin(store, worker="dying")
    assert await claim(store, "watcher") == []

    await bell.wait()

    assert await take_over_the_lost(watcher, "watcher") == ["dying"]
    assert await claim(store, "watcher") == ["run-1"]


async def test_released_session_is_heard_of_at_once(etcd_url: str, open_leases: Opener) -> None:
    """No worker waits for the lease of a session that was released."""
    leaving, watcher = await open_leases(etcd_url), await open_leases(etcd_url)
    bell = Bell()
    watcher.watch(bell.ring)
    await bell.wait()
    await enlist(leaving, "leaving")

    await leaving.end_session("leaving")

    await bell.wait()
    assert await lost(watcher) == []


async def test_watch_is_closed_with_its_leases(etcd_url: str, store: Store) -> None:
    """Though it waits for something to be said: no thread is left behind."""
    ended = threading.Event()

    class Listening(SystemClock):
        def spawn(self, target: Callable[[], None], *, name: str) -> None:
            def run() -> None:
                target()
                ended.set()

            super().spawn(run, name=name)

    leases = EtcdLeases(store, parse_address(etcd_url), clock=Listening())
    await leases.open()
    bell = Bell()
    leases.watch(bell.ring)
    await bell.wait()

    await leases.close()

    assert await asyncio.to_thread(ended.wait, HEARING_SECONDS)


async def test_next_session_of_a_worker_is_rung_instead_of_the_one_before(etcd_url: str, open_leases: Opener) -> None:
    """There is one watch, however many sessions a worker has had."""
    leases = await open_leases(etcd_url)
    before, after = Bell(), Bell()
    leases.watch(before.ring)
    await before.wait()

    leases.watch(after.ring)

    await enlist(leases, "leaving")
    await leases.end_session("leaving")
    await after.wait()
    assert before.count == 1


async def test_new_session_is_not_taken_for_lost(etcd_url: str, open_leases: Opener, store: Store) -> None:
    """The key of a session is there before its row, at whichever moment a worker looks."""
    watcher, arriving = await open_leases(etcd_url), await open_leases(etcd_url)
    register, seen = store.register_worker, []

    async def look_first(*args: object, **kwargs: object) -> None:
        seen.append(await lost(watcher))
        await register(*args, **kwargs)  # type: ignore[arg-type]
        seen.append(await lost(watcher))

    store.register_worker = look_first  # type: ignore[method-assign]
    await enlist(arriving, "arriving")

    assert seen == [[], []]


async def test_session_that_begins_during_a_look_is_not_taken_for_lost(
    store: Store, etcd_url: str, open_leases: Opener
) -> None:
    """Rows are read before keys: a session that has a row by then has a key."""
    watcher, arriving = await open_leases(etcd_url), await open_leases(etcd_url)
    await enlist(arriving, "first")
    list_workers = store.list_workers

    async def list_late(**options: bool) -> list[WorkerInfo]:
        await enlist(arriving, "second")
        return await list_workers(**options)

    store.list_workers = list_late  # type: ignore[method-assign]

    assert await lost(watcher) == []


async def test_session_whose_lease_ran_out_while_it_began_does_not_begin(
    store: Store, etcd_url: str, open_leases: Opener
) -> None:
    """The store took longer than the lease: no worker counts on a lease that is over already."""
    watcher, arriving = await open_leases(etcd_url), await open_leases(etcd_url)
    bell = Bell()
    watcher.watch(bell.ring)
    await bell.wait()
    register = store.register_worker

    async def register_late(worker: WorkerInfo, *, lease_seconds: float) -> None:
        await bell.wait()
        await register(worker, lease_seconds=lease_seconds)

    store.register_worker = register_late  # type: ignore[method-assign]

    with pytest.raises(StoreUnavailableError, match="ran out while the session began"):
        await enlist(arriving, "arriving", lease_seconds=SHORT_SECONDS)

    assert await store.list_workers() == []


async def test_session_kept_otherwise_is_not_judged(
    store: Store, etcd_url: str, etcd_server: EtcdServer, open_leases: Opener
) -> None:
    """A session that the store keeps, that nothing keeps, or that is under another prefix is not judged; but a process
    that is seen to be gone is gone."""
    watcher, elsewhere = await open_leases(etcd_url), await open_leases(f"{etcd_url}-other")
    await enlist(StoreLeases(store), "by the store")
    await enlist(NoLeases(store), "by nothing")
    await enlist(elsewhere, "elsewhere", lease_seconds=SHORT_SECONDS)
    await enlist(StoreLeases(store), "gone", process=GONE)

    assert await lost(watcher) == ["gone"]


async def test_two_etcds_that_look_alike_do_not_judge_each_other(
    etcd_url: str, etcd_server: EtcdServer, open_leases: Opener
) -> None:
    """Each machine's own at localhost, with one store between them: the same address means two places."""
    with EtcdServer() as other:
        one = await open_leases(etcd_url)
        two = await open_leases(etcd_url.replace(str(etcd_server.port), str(other.port)))
        await enlist(one, "one")
        await enlist(two, "two")

        assert await lost(one) == await lost(two) == []


async def test_row_names_the_place_that_keeps_it(store: Store, etcd_url: str, open_leases: Opener) -> None:
    """So that two processes agree on it, and a person can see it."""
    one, two = await open_leases(etcd_url), await open_leases(etcd_url)
    await enlist(one, "worker-a")

    (worker,) = await store.list_workers()

    assert worker.lease == one.name == two.name
    assert worker.lease.startswith("etcd:test-")


# -- Beats -------------------------------------------------------------------------------------------------------------


async def test_session_lives_as_long_as_it_beats(etcd_url: str, open_leases: Opener) -> None:
    """For longer than its lease; and it is over when it has stopped for that long."""
    leases, watcher = await open_leases(etcd_url), await open_leases(etcd_url)
    bell = Bell()
    watcher.watch(bell.ring)
    await bell.wait()
    await enlist(leases, "mortal", lease_seconds=SHORT_SECONDS)
    await enlist(leases, "beating", lease_seconds=SHORT_SECONDS)
    beat = leases.open_beat("beating")
    while bell.count < 2:
        assert await renew(beat, lease_seconds=SHORT_SECONDS)
    await bell.wait()

    assert await lost(watcher) == ["mortal"]

    await bell.wait()
    assert sorted(await lost(watcher)) == ["beating", "mortal"]
    assert not await renew(beat)
    beat.close()
    beat.close()


async def test_session_that_others_ended_learns_it_with_its_next_beat(etcd_url: str, open_leases: Opener) -> None:
    """They end its lease too."""
    ended, other = await open_leases(etcd_url), await open_leases(etcd_url)
    await enlist(ended, "ended")
    beat = ended.open_beat("ended")
    assert await renew(beat)

    await other.end_session("ended")

    assert not await renew(beat)
    beat.close()


async def test_session_that_was_ended_in_the_store_alone_learns_it_in_time(
    store: Store, etcd_url: str, open_leases: Opener
) -> None:
    """The store is asked every third of its own, longer lease."""
    clock = JumpingClock()
    leases = await open_leases(etcd_url, clock=clock)
    await enlist(leases, "ended", lease_seconds=10)
    beat = leases.open_beat("ended")
    await store.end_session("ended")
    assert await renew(beat, lease_seconds=10)

    clock.jump(21)

    assert not await renew(beat, lease_seconds=10)
    beat.close()


async def test_store_keeps_a_longer_lease(
    store: Store, store_clock: ManualClock, etcd_url: str, open_leases: Opener
) -> None:
    """A minute at least, or six times the lease; renewed every third of it."""
    clock = JumpingClock()
    leases = await open_leases(etcd_url, clock=clock)
    await enlist(leases, "short", lease_seconds=10)
    await enlist(leases, "long", lease_seconds=100)
    now = store_clock.now()
    assert {it.id: it.expires_at - now for it in await store.list_workers()} == {
        "short": 60_000_000,
        "long": 600_000_000,
    }
    beat = leases.open_beat("short")
    store_clock.advance(seconds=19)
    clock.jump(19)
    await renew(beat, lease_seconds=10)
    assert (await store.list_workers())[0].expires_at == now + 60_000_000
    store_clock.advance(seconds=2)
    clock.jump(2)

    await renew(beat, lease_seconds=10)

    assert (await store.list_workers())[0].expires_at == now + 81_000_000
    beat.close()


class Away:
    """The beat of a store that cannot be reached."""

    def renew(self, *, lease_seconds: float) -> bool:
        """Fail."""
        raise StoreUnavailableError("the test", f"no store for {lease_seconds:.0f} s")

    def close(self) -> None:
        """Nothing is open."""


async def test_worker_without_its_store_fails_before_the_store_lets_go_of_it(
    store: Store, etcd_url: str, open_leases: Opener
) -> None:
    """A moment without the store costs nothing; but what it keeps for a minute is not trusted for longer."""
    clock = JumpingClock()
    leases = await open_leases(etcd_url, clock=clock)
    await enlist(leases, "worker-a", lease_seconds=10)
    store.open_beat = lambda worker_id: Away()  # type: ignore[method-assign]
    beat = leases.open_beat("worker-a")
    clock.jump(39)
    assert beat.renew(lease_seconds=10)
    clock.jump(2)

    with pytest.raises(StoreUnavailableError, match=r"not reached for 41 s \(the test is unavailable: no store for 60"):
        beat.renew(lease_seconds=10)

    beat.close()


async def test_beat_of_an_unknown_session_is_refused(etcd_url: str, open_leases: Opener) -> None:
    """It was never begun here."""
    leases = await open_leases(etcd_url)

    beat = leases.open_beat("unknown")

    assert not beat.renew(lease_seconds=10)
    beat.close()


# -- Without etcd ------------------------------------------------------------------------------------------------------


async def test_leases_do_not_open_without_etcd(store: Store) -> None:
    """The error names every endpoint and why, and is raised at once: no caller waits for an endpoint that refuses."""
    leases = EtcdLeases(store, parse_address("etcd://127.0.0.1:1,127.0.0.1:2/x"), clock=SystemClock())

    with pytest.raises(StoreUnavailableError, match=r"refused; .*refused") as away:
        await leases.open()

    assert "127.0.0.1:1: " in away.value.reason
    assert "127.0.0.1:2: " in away.value.reason

    await leases.close()
    with pytest.raises(StoreUnavailableError, match="not open"):
        await enlist(leases, "worker-a")


async def test_etcd_that_is_killed_costs_time_and_no_session(
    store: Store, etcd_program: None, open_leases: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    """Beats fail meanwhile, sessions are judged by their process alone, and everything goes on after its restart."""
    clock = JumpingClock()
    with EtcdServer() as server:
        leases, watcher = await open_leases(server.url()), await open_leases(server.url(), clock=clock)
        bell = Bell()
        watcher.watch(bell.ring)
        await bell.wait()
        await enlist(leases, "worker-a")
        await enlist(leases, "gone", process=GONE)
        beat = leases.open_beat("worker-a")

        server.kill()

        with pytest.raises(StoreUnavailableError, match="refused"):
            beat.renew(lease_seconds=10)
        for _ in range(2):
            assert await lost(watcher) == ["gone"]
            clock.jump(6)  # It is not asked all the time.
        with pytest.raises(StoreUnavailableError):
            await enlist(leases, "worker-b")
        assert len([it for it in caplog.messages if "it is unknown which workers are alive" in it]) == 1
        server.start()
        await bell.wait()
        assert await renew(beat)
        assert await lost(watcher) == ["gone"]
        await enlist(leases, "worker-b")
        beat.close()


async def test_session_ends_in_the_store_while_etcd_is_away(
    store: Store, etcd_program: None, open_leases: Opener, caplog: pytest.LogCaptureFixture
) -> None:
    """A session ends in the store while etcd is away, and its key is left to run out by itself."""
    caplog.set_level(logging.INFO)
    with EtcdServer() as server:
        leases = await open_leases(server.url())
        await enlist(leases, "worker-a")
        beat = leases.open_beat("worker-a")
        server.kill()

        await leases.end_session("worker-a")

    assert await store.list_workers() == []
    assert "the key of worker worker-a stays" in caplog.text
    assert not beat.renew(lease_seconds=10), "the store is asked as soon as etcd does not answer"
    beat.close()


async def test_etcd_that_lost_its_data_is_another_place(store: Store, etcd_program: None, open_leases: Opener) -> None:
    """Sessions notice it and begin again; a session that has not begun again is not taken for lost by the new place."""
    with EtcdServer() as server:
        leases = await open_leases(server.url())
        before = leases.name
        await enlist(leases, "worker-a")
        beat = leases.open_beat("worker-a")
        server.remove()
        server.start()

        assert not await renew(beat)
        assert await lost(leases) == []
        await enlist(leases, "worker-b")
        assert leases.name != before
        assert await lost(leases) == []
        beat.close()
