"""Three nodes of etcd, killed and paused: beats fail for a moment, no live worker is lost, and the fence holds."""

import asyncio
from collections.abc import Callable

import pytest

from outlive._kernel.lease.etcd.leases import AWAY_SECONDS
from outlive._kernel.store.contract import Outcome, Store
from outlive.errors import StoreUnavailableError
from outlive_conformance.servers.etcd import EtcdCluster, EtcdServer
from outlive_conformance.suite.builders import begin, follow, stepped
from tests.lease.conftest import Opener
from tests.lease.fleet import (
    LOOK_SECONDS,
    PATIENCE_SECONDS,
    SHORT_SECONDS,
    Bell,
    JumpingClock,
    claim,
    enlist,
    lost,
    renew,
    take_over_the_lost,
)

Fault = Callable[[EtcdCluster], None]


def follower_of(cluster: EtcdCluster) -> EtcdServer:
    """A node that does not lead."""
    leader = cluster.leader
    return next(node for node in cluster.nodes if node is not leader)


def kill_a_follower(cluster: EtcdCluster) -> None:
    """One of three."""
    follower_of(cluster).kill()


def kill_the_leader(cluster: EtcdCluster) -> None:
    """The others elect another one."""
    cluster.leader.kill()


def pause_the_leader(cluster: EtcdCluster) -> None:
    """It takes connections and answers nothing."""
    cluster.leader.pause()


def kill_all_and_restart(cluster: EtcdCluster) -> None:
    """What they had confirmed is on their disks."""
    cluster.kill()
    cluster.start()


FAULTS = [kill_a_follower, kill_the_leader, pause_the_leader, kill_all_and_restart]


@pytest.mark.parametrize("fault", FAULTS)
async def test_living_session_survives(
    fault: Fault, etcd_cluster: EtcdCluster, cluster_url: str, open_leases: Opener
) -> None:
    """A worker renews its lease at the members that answer, and other workers begin sessions and judge as before."""
    leases, watcher = await open_leases(cluster_url), await open_leases(cluster_url)
    await enlist(leases, "living")
    beat = leases.open_beat("living")
    assert await renew(beat)

    fault(etcd_cluster)

    assert await renew(beat)
    assert await lost(watcher) == []
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await enlist(watcher, "watcher")
                break
            except StoreUnavailableError:
                """There is no leader yet."""
    assert await lost(leases, "living") == []
    beat.close()


@pytest.mark.parametrize("fault", FAULTS)
async def test_dead_session_is_replaced_and_cannot_write(
    fault: Fault, store: Store, etcd_cluster: EtcdCluster, cluster_url: str, open_leases: Opener
) -> None:
    """Later than without the fault, perhaps; but what it writes when it comes back is refused. [F43]"""
    clock = JumpingClock()
    dying, rescuer = await open_leases(cluster_url), await open_leases(cluster_url, clock=clock)
    await enlist(dying, "dying", lease_seconds=SHORT_SECONDS)
    await enlist(rescuer, "rescuer")
    beat = dying.open_beat("dying")
    await begin(store, worker="dying")
    zombie = await follow(store, "run-1")

    fault(etcd_cluster)

    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await take_over_the_lost(rescuer, "rescuer"):
            clock.jump(AWAY_SECONDS)
            await asyncio.sleep(LOOK_SECONDS)
    assert await claim(store, "rescuer") == ["run-1"]
    assert await zombie.try_write(stepped(store)) is Outcome.CONFLICT
    assert not await renew(beat)
    successor = await follow(store, "run-1")
    assert await successor.try_write(stepped(store)) is Outcome.COMMITTED
    assert await claim(store, "dying") == []
    beat.close()


async def test_cluster_without_a_majority_says_so_at_once(
    etcd_cluster: EtcdCluster, cluster_url: str, open_leases: Opener
) -> None:
    """No caller waits for a leader that cannot be; when one node is back, everything goes on."""
    leases = await open_leases(cluster_url)
    await enlist(leases, "living")
    beat = leases.open_beat("living")
    first, second, third = etcd_cluster.nodes
    first.kill()
    second.kill()
    while third.leader_id:  # noqa: ASYNC110 (etcd does not announce it)
        await asyncio.sleep(LOOK_SECONDS)

    with pytest.raises(StoreUnavailableError, match=rf":{third.port}: no leader"):
        await asyncio.to_thread(beat.renew, lease_seconds=PATIENCE_SECONDS)

    second.launch()
    assert await renew(beat)
    beat.close()


async def test_watch_moves_to_a_node_that_answers(
    etcd_cluster: EtcdCluster, cluster_url: str, open_leases: Opener
) -> None:
    """Whichever node it listened to: each is killed once, and sessions that end are heard of all the same."""
    leases, watcher = await open_leases(cluster_url), await open_leases(cluster_url)
    bell = Bell()
    watcher.watch(bell.ring)
    await bell.wait()
    for node in [*etcd_cluster.nodes, None, None]:
        rung = bell.count
        if node is not None:
            node.kill()
            etcd_cluster.start()
        await enlist(leases, "leaving")
        await leases.end_session("leaving")
        while bell.count == rung:
            await bell.wait()
