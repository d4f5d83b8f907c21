"""`outlive worker --lease etcd://a,b,c`: workers whose lives an etcd cluster judges; real processes and signals."""

from __future__ import annotations

import signal
from collections.abc import Callable

import outlive
from outlive_conformance.servers.etcd import EtcdCluster
from tests.cli.conftest import Command, Ledger
from tests.cli.test_worker import APP, start

Begin = Callable[..., Command]


async def test_workers_share_a_cluster_that_loses_its_leader(
    etcd_program: None, url: str, command: Begin, ledger: Ledger
) -> None:
    """A worker is killed, then the leader of the cluster: the other worker has the run, and stops as it is asked to."""
    del etcd_program
    with EtcdCluster(3) as cluster:
        options = ("--store", url, "--lease", cluster.url("shop"), "--lease-seconds", "600")
        await start(url)
        first = command("worker", APP, *options)
        first.ready()
        ledger.hears("begin a-1")
        second = command("worker", APP, *options)
        second.ready()

        first.signal(signal.SIGKILL)
        ledger.hears("begin a-1", times=2)
        cluster.leader.kill()
        ledger.open_gate()

        async with outlive.Engine(url, worker=False) as client:
            assert "a-1 a-2" == await client.get("a").result(timeout=20)
        second.signal(signal.SIGTERM)
        assert 0 == second.ends()


async def test_a_cluster_that_is_not_there_is_waited_for(url: str, command: Begin) -> None:
    """A worker waits for an etcd cluster that is away, names its address without the password, and can be stopped
    meanwhile."""
    lease = "etcd://shop:s3cret@127.0.0.1:1/shop"
    worker = command("worker", APP, "--store", url, "--lease", lease)

    worker.says("127.0.0.1:1")
    worker.signal(signal.SIGTERM)

    assert 0 == worker.ends()
    assert "s3cret" not in worker.log


async def test_leases_without_a_keeper_are_refused(url: str, command: Begin) -> None:
    """With the kinds that there are, in one line."""
    worker = command("worker", APP, "--store", url, "--lease", "zookeeper://a")

    assert 2 == worker.ends()
    assert "etcd://" in worker.log
    assert "Traceback" not in worker.log
