"""A write that its caller gives up while it is pending in the store is not written, and the error says so."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing
from contextvars import copy_context
from pathlib import Path

import apsw
import pytest

from outlive._kernel.client.timed_store import TimedStore
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Delivery
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.postgres.store import SHARED_SESSIONS_MAX
from outlive._kernel.store.sqlite import SqliteStore
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive_conformance.suite.builders import begin, message, send
from tests.engine.loop_time import LoopTime
from tests.engine.support import in_time, turns_of_the_loop
from tests.sqlite.threads import in_writer

SECONDS = 600


async def test_write_in_the_line_of_a_file_is_not_written(tmp_path: Path, loop_time: LoopTime) -> None:
    """The thread that writes is at another one: what it has begun is in doubt, and a write behind it is not."""
    store = SqliteStore(tmp_path / "runs.db", clock=SystemClock().now)
    await store.open()
    callers = TimedStore(store, seconds=SECONDS)
    began, gate = threading.Event(), threading.Event()

    def change(_data: bytes | None, _now_at: int) -> tuple[bytes, None]:
        began.set()
        gate.wait()
        return b"1", None

    try:
        under_way = asyncio.create_task(callers.change_cell("begun", change))
        await asyncio.to_thread(began.wait)
        in_line = asyncio.create_task(callers.change_cell("behind", lambda *_: (b"1", None)))
        await turns_of_the_loop(3)
        loop_time.skip(seconds=SECONDS)
        await in_time(asyncio.wait([under_way, in_line]))
    finally:
        gate.set()

    with pytest.raises(CommitUnknownError, match="not known whether what was asked of it for the cell begun was"):
        under_way.result()
    assert type(in_line.exception()) is StoreUnavailableError
    assert str(in_line.exception()).endswith("600 s; what was asked of it for the cell behind was not written")
    await store.change_cell("last", lambda *_: (b"1", None))
    assert [await store.read_cell("begun"), await store.read_cell("behind")] == [b"1", None]
    await store.close()


async def test_write_that_waits_for_another_process_is_not_written(tmp_path: Path, loop_time: LoopTime) -> None:
    """The thread has taken it, and waits until it may write the file."""
    path = tmp_path / "runs.db"
    store = SqliteStore(path, clock=SystemClock().now)
    await store.open()
    waits = threading.Event()

    def note(*_: object) -> bool:
        waits.set()
        return True

    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        await in_writer(store, lambda session: session.connection.set_exec_trace(note))
        call = TimedStore(store, seconds=SECONDS).change_cell("cell", lambda *_: (b"1", None))
        waiting = asyncio.create_task(call)
        await asyncio.to_thread(waits.wait)
        loop_time.skip(seconds=SECONDS)
        await in_time(asyncio.wait([waiting]))
        other.execute("ROLLBACK")

    assert type(waiting.exception()) is StoreUnavailableError
    assert str(waiting.exception()).endswith("for the cell cell was not written")
    assert await store.read_cell("cell") is None
    await store.close()


async def test_write_that_waits_for_a_connection_is_not_written(postgres_url: str, loop_time: LoopTime) -> None:
    """All connections are in use, as they are when the server is frozen."""
    store = PostgresStore(postgres_url, clock=SystemClock().now)
    await store.open()
    writer = await begin(store, "r-1")
    shared = store.pools.shared
    sessions = [await shared.take() for _ in range(SHARED_SESSIONS_MAX)]
    callers = TimedStore(store, seconds=SECONDS)
    sent = message(store, writer.run_id, key="k-1")
    signal = asyncio.create_task(callers.deliver([sent], inbox_messages_max=10))
    await turns_of_the_loop(5)
    loop_time.skip(seconds=SECONDS)
    await in_time(asyncio.wait([signal]))
    for session in sessions:
        shared.give(session)

    assert type(signal.exception()) is StoreUnavailableError
    assert str(signal.exception()).endswith("600 s; what was asked of it for r-1 was not written")
    assert await send(store, sent) == [Delivery.ACCEPTED]
    await store.close()


async def test_write_that_is_closed_in_another_context_ends(tmp_path: Path) -> None:
    """The interpreter does so with a call that nothing waits for any more."""
    store = SqliteStore(tmp_path / "runs.db", clock=SystemClock().now)
    await store.open()
    call = TimedStore(store, seconds=SECONDS).change_cell("cell", lambda *_: (b"1", None))
    copy_context().run(call.send, None)
    call.close()
    await store.close()
