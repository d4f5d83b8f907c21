"""A server that is another one than before, or in another of its lives, is noticed by the next connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from outlive._kernel.store.postgres import PostgresStore
from outlive.errors.store import StoreWentBackError
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.servers.proxy import Proxy
from outlive_conformance.suite.builders import begin, hire
from tests.postgres.support import through

pytestmark = pytest.mark.every_store


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    """A server that can be restored; it finds no archive, so it ends where it is."""
    with PostgresServer(fsync=False, settings={"restore_command": "/bin/false"}) as server:
        yield server


def restore(server: PostgresServer) -> None:
    """Start it again as one that is restored to a point in time: it begins a new timeline."""
    ((folder,),) = server.execute("SHOW data_directory")
    server.stop()
    Path(folder, "recovery.signal").touch()
    server.start()
    while server.execute("SELECT pg_is_in_recovery()") == [(True,)]:
        pass


async def test_new_timeline_is_noticed_once(server: PostgresServer) -> None:
    """By the first connection, and by the beat of a session."""
    store = PostgresStore(server.store_url(), clock=ManualClock())
    await store.open()
    changes: list[StoreWentBackError] = []
    store.watch_incarnation(changes.append)
    await hire(store, "worker-a")
    beat = store.open_beat("worker-a")
    assert beat.renew(lease_seconds=30)
    server.restart()
    await store.list_workers()
    assert changes == [], "a restart changes nothing"

    restore(server)
    await store.list_workers()

    assert ["another server took over (timeline 2 after 1)"] == [change.reason for change in changes]
    beat.close()
    beat = store.open_beat("worker-a")
    assert beat.renew(lease_seconds=30), "it was reported already"
    restore(server)
    beat.close()
    with pytest.raises(StoreWentBackError, match="timeline 3 after 2"):
        beat.renew(lease_seconds=30)
    await store.list_workers()
    assert len(changes) == 1
    beat.close()
    await store.close()


async def test_server_that_was_replaced_and_still_runs_is_used_no_more(
    server: PostgresServer, postgres_server: PostgresServer
) -> None:
    """A connection that was made before still works. What is read from the new server and written to the old one, or
    acknowledged by the old one alone, fits neither."""
    clock = ManualClock()
    database = postgres_server.create_database("replaced")
    server.create_database(database)
    with Proxy("127.0.0.1", server.port) as proxy:
        old = PostgresStore(server.store_url(database), clock=clock)
        new = PostgresStore(postgres_server.store_url(database), clock=clock)
        store = PostgresStore(through(proxy, server.store_url(database)), clock=clock)
        async with AsyncExitStack() as stack:
            for each in (store, old, new):
                await each.open()
                stack.push_async_callback(each.close)
            await begin(store, "before")
            assert await old.find_run("before")

            proxy.lead_to("127.0.0.1", postgres_server.port)
            beat = store.open_beat("worker-a")
            stack.callback(beat.close)
            with pytest.raises(StoreWentBackError, match="it is another server"):
                beat.renew(lease_seconds=30)
            await begin(store, "after")

            assert await new.find_run("after")
            assert not await old.find_run("after")
            assert not await store.find_run("before")
