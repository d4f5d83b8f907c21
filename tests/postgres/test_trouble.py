"""Wires that are cut, servers that are killed: no caller gets a wrong outcome, and everything goes on after it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, TypeVar

import pytest

from outlive._kernel.store.contract import CLOSE_SECONDS, Outcome
from outlive._kernel.store.postgres import PostgresStore, listen
from outlive._kernel.store.postgres import beat as beats
from outlive._kernel.store.postgres.connection import connect
from outlive._tasks import own_task
from outlive.errors import CommitUnknownError, StoreError, StoreUnavailableError
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.servers.proxy import Proxy
from outlive_conformance.suite.builders import (
    begin,
    blob,
    claim,
    get_run,
    hire,
    message,
    new_tree,
    read_names,
    send,
    stepped,
)
from tests.postgres.conftest import Opener
from tests.postgres.support import connected, in_time, through, until

T = TypeVar("T")
SLACK_SECONDS = 5.0
"""For a machine that has other things to do; a verb that keeps the store waits for half a minute."""


@pytest.fixture
async def far(proxy: Proxy, postgres_url: str, open_store: Opener) -> PostgresStore:
    """A store at the other end of a wire that can be cut."""
    return await open_store(through(proxy, postgres_url))


# -- The wire ----------------------------------------------------------------------------------------------------------


async def test_commit_whose_answer_is_lost_is_unknown_and_there(
    proxy: Proxy, far: PostgresStore, store: PostgresStore
) -> None:
    """Reading tells; saying that it failed would be a lie."""
    tree = await begin(far)
    await tree.step()  # From now on the statement is prepared, and sent at once.
    proxy.cut_request(1)

    with pytest.raises(CommitUnknownError):
        await far.commit([tree.change(stepped(far))])

    assert len(await far.read_journal(tree.journal)) == 3
    assert len(await store.read_journal(tree.journal)) == 3


async def test_commit_that_never_arrives_is_unknown_and_not_there(proxy: Proxy, far: PostgresStore) -> None:
    """The store cannot tell the two apart, and does not pretend to."""
    tree = await begin(far)
    proxy.cut_request(1, before=True)

    with pytest.raises(CommitUnknownError):
        await far.commit([tree.change(stepped(far))])

    assert len(await far.read_journal(tree.journal)) == 1
    assert await tree.try_write(stepped(far)) is Outcome.COMMITTED


async def test_commit_without_a_connection_has_not_happened(proxy: Proxy, far: PostgresStore) -> None:
    """Nothing was sent: no need to read."""
    tree = await begin(far)
    proxy.go_down()
    await until(lambda: _is_closed(far))

    with pytest.raises(StoreUnavailableError) as caught:
        await far.commit([tree.change(stepped(far))])

    assert not isinstance(caught.value, CommitUnknownError)
    proxy.come_back()
    assert await tree.try_write(stepped(far)) is Outcome.COMMITTED


async def _is_closed(store: PostgresStore) -> bool:
    return all(not session.is_open for session in store.pools.writer.free)


@pytest.mark.parametrize("before", [True, False], ids=["before it arrives", "after it was done"])
@pytest.mark.parametrize("is_prepared", [True, False], ids=["prepared", "new"])
async def test_read_whose_wire_is_cut_is_asked_again(
    proxy: Proxy, far: PostgresStore, *, before: bool, is_prepared: bool
) -> None:
    """The caller does not notice: reading twice does no harm."""
    await begin(far)
    if is_prepared:
        await get_run(far, "run-1")
    proxy.cut_request(1, before=before)

    await get_run(far, "run-1")

    assert proxy.cuts == 1


async def test_blob_whose_wire_is_cut_is_put_again(proxy: Proxy, far: PostgresStore) -> None:
    """It is named by its content, so twice is once."""
    one, other = blob(b"one"), blob(b"other")
    await far.put_blobs([other])
    proxy.cut_request(1)

    await far.put_blobs([one])

    assert proxy.cuts == 1
    assert await far.get_blobs([one.id]) == {one.id: b"one"}


async def test_lost_reads_are_unavailable_and_work_again(proxy: Proxy, far: PostgresStore) -> None:
    """A read that was lost did nothing, so no caller has to be careful."""
    await begin(far)
    proxy.go_down()

    with pytest.raises(StoreUnavailableError) as caught:
        await far.find_run("run-1")

    assert not isinstance(caught.value, CommitUnknownError)
    proxy.come_back()
    await get_run(far, "run-1")


async def test_lost_delivery_with_a_key_can_be_sent_again(proxy: Proxy, far: PostgresStore) -> None:
    """It arrives once."""
    tree = await begin(far)
    await send(far, message(far, "run-1", "before"))
    proxy.cut_request(1)

    with pytest.raises(CommitUnknownError):
        await send(far, message(far, "run-1", key="k"))

    await send(far, message(far, "run-1", key="k"))
    assert await read_names(far, tree) == ["before", "go"]


async def test_beat_gives_up_in_time(proxy: Proxy, far: PostgresStore) -> None:
    """A server that does not answer must not hold the thread that keeps the lease."""
    await hire(far, "worker-a")
    beat = far.open_beat("worker-a")
    assert await asyncio.to_thread(beat.renew, lease_seconds=30)
    proxy.go_deaf()

    began = time.monotonic()
    with pytest.raises(StoreUnavailableError):
        await asyncio.to_thread(beat.renew, lease_seconds=0.6)
    assert time.monotonic() - began < SLACK_SECONDS

    proxy.come_back()
    proxy.cut_all()
    assert await asyncio.to_thread(beat.renew, lease_seconds=30)
    await asyncio.to_thread(beat.close)


async def test_store_is_closed_in_time_though_its_server_is_silent(
    proxy: Proxy, postgres_url: str, clock: ManualClock
) -> None:
    """Neither what it has asked for, nor the connections that it closes politely, keep it."""
    store = PostgresStore(through(proxy, postgres_url), clock=clock)
    await store.open()
    tree = await begin(store)
    await asyncio.gather(*(store.list_workers() for _ in range(4)))
    proxy.go_deaf()
    under_way = [
        asyncio.ensure_future(verb) for verb in (tree.step(), hire(store, "worker-a"), store.find_run("run-1"))
    ]
    await asyncio.sleep(0)

    began = time.monotonic()
    await store.close()

    assert time.monotonic() - began < CLOSE_SECONDS + SLACK_SECONDS
    outcomes = await asyncio.gather(*under_way, return_exceptions=True)
    assert all(isinstance(outcome, StoreError | asyncio.CancelledError) for outcome in outcomes), outcomes
    proxy.come_back()
    proxy.cut_all()


async def test_listener_listens_again_after_a_cut(proxy: Proxy, far: PostgresStore, store: PostgresStore) -> None:
    """A listener whose line was cut connects again, rings once for what it may have missed, and hears the next
    commit."""
    rung = asyncio.Event()
    far.watch(lambda _: rung.set())
    await in_time(rung.wait())
    rung.clear()

    proxy.cut_all()

    await in_time(rung.wait())
    rung.clear()
    await store.commit([new_tree(store, "run-1")])
    await in_time(rung.wait())


async def test_idle_listener_goes_on_hearing(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks now and then whether its connection is there. A deaf one is seen by delays alone: all polls."""
    monkeypatch.setattr(listen, "PING_SECONDS", 0.001)
    asked, rung = asyncio.Semaphore(0), asyncio.Event()

    async def connect_and_count(*args: Any, **options: Any) -> Any:
        connection: Any = await connect(*args, **options)
        execute = connection.execute

        async def execute_and_count(statement: str, *values: Any, **options: Any) -> str:
            status: str = await execute(statement, *values, **options)
            asked.release()
            return status

        connection.execute = execute_and_count
        return connection

    monkeypatch.setattr(listen, "connect", connect_and_count)
    store.watch(lambda _: rung.set())
    await in_time(rung.wait())
    for _ in range(3):
        await in_time(asked.acquire())
    rung.clear()

    await other.commit([new_tree(other, "run-1")])

    await in_time(rung.wait())


async def test_listener_listens_again_after_a_defect(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A listener that failed with a defect logs it, connects again, and hears the next commit."""
    defects = iter([RuntimeError("a defect")])

    async def connect_in_the_end(*args: Any, **options: Any) -> Any:
        for defect in defects:
            raise defect
        return await connect(*args, **options)

    monkeypatch.setattr(listen, "connect", connect_in_the_end)
    rung = asyncio.Event()
    store.watch(lambda _: rung.set())
    await in_time(rung.wait())
    rung.clear()

    await other.commit([new_tree(other, "run-1")])

    await in_time(rung.wait())
    assert "a defect" in caplog.text


async def test_listener_notices_that_the_server_does_not_answer(
    proxy: Proxy, far: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that swallows everything is never cut: without asking, nothing would ever be heard again."""
    monkeypatch.setattr(listen, "PING_SECONDS", 0.01)
    monkeypatch.setattr(listen, "CONNECT_SECONDS", 0.05)
    rung, is_leaving = asyncio.Event(), asyncio.Event()

    async def connect_again(*args: Any, **options: Any) -> Any:
        if rung.is_set():
            rung.clear()
            is_leaving.set()
        return await connect(*args, **options)

    monkeypatch.setattr(listen, "connect", connect_again)
    far.watch(lambda _: rung.set())
    await in_time(rung.wait())
    proxy.go_deaf()

    await in_time(is_leaving.wait())

    proxy.come_back()
    await in_time(rung.wait())


async def test_beat_does_not_wait_for_a_driver_that_never_comes_back(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is looked up for minutes, say, in a call that knows no timeout."""
    monkeypatch.setattr(beats, "SLACK_SECONDS", 0.01)
    gate = threading.Event()

    async def connect_never(*_args: object, **_options: object) -> None:
        gate.wait()
        raise StoreUnavailableError("there", "away")

    monkeypatch.setattr(beats, "connect", connect_never)
    beat = store.open_beat("worker-a")

    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match="no answer in time"):
            await asyncio.to_thread(beat.renew, lease_seconds=0.01)

    gate.set()
    await asyncio.to_thread(beat.close)


async def test_store_that_is_used_in_a_fork_says_so(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes would talk over one line; whatever the child does, the parent's lines are left alone."""
    tree = await begin(store)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        for verb in (store.open, lambda: store.find_run("run-1"), lambda: store.commit([tree.change(stepped(store))])):
            with pytest.raises(StoreError, match="open it after the fork only"):
                await verb()
        with pytest.raises(StoreError, match="open it after the fork only"):
            store.open_beat("worker-a")
        await store.close()

    await tree.step()
    assert len(await store.read_journal(tree.journal)) == 2


# -- The server --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_server(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """A durable server that may be killed."""
    assert postgres_server.is_running
    with PostgresServer() as server:
        yield server


async def test_store_goes_on_after_its_server_was_killed(own_server: PostgresServer) -> None:
    """A store whose server was killed has everything acknowledged when the server is back, and its verbs raise
    StoreUnavailableError meanwhile."""
    store = PostgresStore(own_server.store_url(own_server.create_database()), clock=ManualClock())
    await store.open()
    tree = await begin(store)
    await hire(store, "worker-a")
    await send(store, message(store, "run-1"))

    own_server.kill()
    with pytest.raises(StoreUnavailableError):
        await get_run(store, "run-1")
    with pytest.raises(StoreUnavailableError):
        await store.commit([tree.change(stepped(store))])
    own_server.start()

    async def is_back() -> bool:
        try:
            return await tree.try_write(stepped(store)) is Outcome.COMMITTED
        except StoreUnavailableError:
            return False

    await until(is_back)
    assert len(await store.read_journal(tree.journal)) == 2
    assert await read_names(store, tree) == ["go"]
    assert await claim(store, "worker-a") == ["run-1"]
    await store.close()


async def test_store_can_be_closed_while_its_server_is_away(own_server: PostgresServer) -> None:
    """No caller waits for a dead connection."""
    store = PostgresStore(own_server.store_url(own_server.create_database()), clock=ManualClock())
    await store.open()
    await begin(store)

    own_server.stop()
    await in_time(store.close())
    own_server.start()


# -- Pools -------------------------------------------------------------------------------------------------------------


async def test_closed_store_leaves_no_transaction_open(store: PostgresStore, postgres_server: PostgresServer) -> None:
    """A step that no run waits for any more keeps neither a connection nor what it has locked."""
    left_open = await store.begin()
    await left_open.handle.execute("SELECT 1")
    open_there = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'outlive' AND state LIKE 'idle in transaction%'"
    )
    assert postgres_server.execute(open_there) == [(1,)]

    await store.close()

    async def is_gone() -> bool:
        return postgres_server.execute(open_there) == [(0,)]

    await until(is_gone)
    with pytest.raises(StoreError, match="is not open"):
        await left_open.commit([])


async def test_more_verbs_than_connections_wait_for_their_turn(store: PostgresStore) -> None:
    """Exhaustion is not an error."""
    await begin(store)

    runs = await in_time(asyncio.gather(*(store.find_run("run-1") for _ in range(50))))

    assert all(run is not None for run in runs)


async def test_store_keeps_nothing_of_verbs_that_have_ended(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that lives for years does not grow with every commit."""
    verbs: list[weakref.ref[asyncio.Task[Any]]] = []

    def own_verb(work: Coroutine[Any, Any, Any], *, name: str) -> asyncio.Task[Any]:
        task = own_task(work, name=name)
        verbs.append(weakref.ref(task))
        return task

    monkeypatch.setattr("outlive._kernel.store.postgres.store.own_task", own_verb)
    tree = await begin(store)
    await tree.step()
    assert await store.append_checkpoint("run-1", (1, 1, 1, b"", None))
    await asyncio.sleep(0)

    assert len(verbs) == 3
    assert [verb() for verb in verbs] == [None] * 3


async def test_session_that_the_server_ended_is_replaced(store: PostgresStore, postgres_url: str) -> None:
    """An administrator, or a timeout, ends sessions; a caller that only reads does not notice."""
    await begin(store)
    await get_run(store, "run-1")
    async with connected(postgres_url) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    await get_run(store, "run-1")


class EndedThreads(ThreadPoolExecutor):
    """Threads of a pool in an interpreter that may be ending: then it takes no more work."""

    is_ended = False
    refused: ClassVar[list[partial[Any]]] = []

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        if not self.is_ended:
            return super().submit(fn, *args, **kwargs)
        self.refused.append(partial(fn, *args, **kwargs))
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")


async def test_a_beat_is_quiet_when_the_interpreter_ends_first(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python ends the threads of pools before ours: what a keeper does then is not an error that anybody should see."""
    monkeypatch.setattr("outlive._kernel.store.postgres.beat.ThreadPoolExecutor", EndedThreads)
    await hire(store, "worker-a")
    beat = store.open_beat("worker-a")
    assert await asyncio.to_thread(beat.renew, lease_seconds=30)
    monkeypatch.setattr(EndedThreads, "is_ended", True)

    with pytest.raises(StoreUnavailableError):
        await asyncio.to_thread(beat.renew, lease_seconds=30)
    EndedThreads.refused.clear()
    await asyncio.to_thread(beat.close)

    (close,) = EndedThreads.refused
    await asyncio.to_thread(close)  # The end of the process does what is left.
    close.args[0].close()
