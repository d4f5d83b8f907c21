"""Real etcds, and leases in them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from itertools import count

import pytest

from outlive._kernel.lease.etcd import EtcdLeases, parse_address
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive.testing.clock import ManualClock
from outlive_conformance.servers.etcd import EtcdCluster, EtcdServer
from outlive_conformance.suite import MemoryFactory

Opener = Callable[..., Awaitable[EtcdLeases]]
prefixes = count(1)


@pytest.fixture(scope="module")
def etcd_server(etcd_program: None) -> Iterator[EtcdServer]:
    """One node for all tests of a file that do it no harm. To start it costs less than to keep it for the others."""
    with EtcdServer() as server:
        yield server


@pytest.fixture(scope="module")
def running_cluster(etcd_program: None) -> Iterator[EtcdCluster]:
    """Three nodes for all tests of a file: even idle ones use a twentieth of a core."""
    with EtcdCluster(3) as cluster:
        yield cluster


@pytest.fixture
def etcd_cluster(running_cluster: EtcdCluster) -> Iterator[EtcdCluster]:
    """Three nodes that a test may kill and pause as it likes."""
    yield running_cluster
    for node in running_cluster.nodes:
        if node.is_running:
            node.resume()
    running_cluster.start()


@pytest.fixture
def etcd_url(etcd_server: EtcdServer) -> str:
    """A prefix of its own for each test."""
    return etcd_server.url(f"test-{next(prefixes)}")


@pytest.fixture
def cluster_url(etcd_cluster: EtcdCluster) -> str:
    """A prefix of its own for each test, on all nodes."""
    return etcd_cluster.url(f"test-{next(prefixes)}")


@pytest.fixture
def store_clock() -> ManualClock:
    """The clock of the store, which stands still: only etcd judges who is alive."""
    return ManualClock()


@pytest.fixture
async def store(store_clock: ManualClock) -> AsyncIterator[Store]:
    """A store that all sessions of a test share."""
    store = await MemoryFactory(clock=store_clock).open()
    yield store
    await store.close()


@pytest.fixture
async def open_leases(store: Store) -> AsyncIterator[Opener]:
    """Opens leases, each like those of a process of its own."""
    async with AsyncExitStack() as stack:

        async def open_(url: str, *, clock: SystemClock | None = None) -> EtcdLeases:
            leases = EtcdLeases(store, parse_address(url), clock=clock or SystemClock())
            stack.push_async_callback(leases.close)
            await leases.open()
            return leases

        yield open_
