"""Engines whose leases are in etcd, and whose runs are in PostgreSQL: what happens to runs when either worker or etcd
goes away.

All workers of these tests live in one process, which does not die: only etcd can tell that one of them has.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import outlive
from outlive.engine.diagnosis import diagnose
from outlive.errors import StoreUnavailableError
from outlive.errors.store import LeaseUrlError
from outlive.types import WorkerOptions
from outlive_conformance.servers.etcd import EtcdCluster, EtcdServer
from tests.engine.inside import abandon_sessions, lease_of, session_id_of
from tests.engine.support import hold, in_time, note, stage, until
from tests.lease.fleet import SHORT_SECONDS

LONG_SECONDS = 60.0
"""Longer than any test waits."""


@outlive.workflow
async def leased(name: str) -> list[str]:
    return [await note(f"{name} before"), await hold(name)]


@pytest.fixture(autouse=True)
async def nobody_left() -> AsyncIterator[None]:
    """Clear the stage."""
    stage.clear()
    yield
    stage.clear()


def engine_on(url: str, lease: str, **options: Any) -> outlive.Engine:
    """An engine with its leases in etcd."""
    worker = WorkerOptions(**{"lease": lease, "lease_seconds": SHORT_SECONDS, "grace_seconds": 0.05, **options})
    return outlive.Engine(url, worker=worker)


async def finish(engine: outlive.Engine, run_id: str) -> None:
    """Let the run go on where it is held, to its end; what was done before is not done again."""
    await stage.gate(run_id).reached()
    stage.gate(run_id).open()
    assert await in_time(engine.get(run_id).result()) == [f"{run_id} before", run_id]
    assert stage.count(f"{run_id} before") == 1


async def next_beat_of(engine: outlive.Engine) -> None:
    """Wait until its lease was renewed once more."""
    trust = lease_of(engine)
    before = trust.until

    async def has_beaten() -> bool:
        return trust.until > before

    await until(has_beaten)


async def test_run_of_a_worker_that_went_silent_goes_on_when_etcd_says_so(postgres_url: str, etcd_url: str) -> None:
    """Long before the store would let go of it."""
    first = engine_on(postgres_url, etcd_url)
    await first.__aenter__()
    await first.start(leased, "a", id="a")
    await stage.gate("a").reached()
    abandon_sessions(first)
    await first.__aexit__(None, None, None)

    async with engine_on(postgres_url, etcd_url) as second:
        await finish(second, "a")

        assert second.counters.sessions_ended == 1


async def test_run_of_a_worker_that_stops_goes_on_at_once(postgres_url: str, etcd_url: str) -> None:
    """The other worker does not wait for a lease of a minute."""
    async with engine_on(postgres_url, etcd_url, lease_seconds=LONG_SECONDS) as second:
        async with engine_on(postgres_url, etcd_url, lease_seconds=LONG_SECONDS) as first:
            await first.start(leased, "a", id="a")
            await stage.gate("a").reached()

        await finish(second, "a")


async def test_worker_that_cannot_reach_etcd_is_fenced_and_replaced(
    postgres_url: str, etcd_cluster: EtcdCluster, cluster_url: str
) -> None:
    """Though it reaches the store: its step is cancelled, another worker goes on, and it comes back with etcd."""
    leader = etcd_cluster.leader
    alone = next(node for node in etcd_cluster.nodes if node is not leader)
    prefix = cluster_url.rpartition("/")[2]
    others = ",".join(f"127.0.0.1:{node.port}" for node in etcd_cluster.nodes if node is not alone)
    async with engine_on(postgres_url, alone.url(prefix)) as first:
        await first.start(leased, "a", id="a")
        await stage.gate("a").reached()
        before = session_id_of(first)
        async with engine_on(postgres_url, f"etcd://{others}/{prefix}") as second:
            alone.kill()

            await finish(second, "a")

            assert stage.count("a cancelled") == 1
        alone.start()

        async def is_back() -> bool:
            return session_id_of(first) not in ("", before)

        await until(is_back)
        await first.start(leased, "b", id="b")
        await finish(first, "b")


async def test_etcd_that_is_killed_stops_the_fleet_and_its_return_moves_it_on(
    postgres_url: str, etcd_program: None
) -> None:
    """Workers release their runs in time, because none can prove that it owns them; nothing is lost or done twice."""
    with EtcdServer() as server:
        async with engine_on(postgres_url, server.url()) as first, engine_on(postgres_url, server.url()) as second:
            await first.start(leased, "a", id="a")
            await stage.gate("a").reached()

            server.kill()

            async def are_fenced() -> bool:
                return session_id_of(first) == session_id_of(second) == ""

            await until(are_fenced)
            server.start()
            await finish(second, "a")


async def test_leader_that_is_killed_costs_no_worker_its_session(
    postgres_url: str, etcd_cluster: EtcdCluster, cluster_url: str
) -> None:
    """An election is shorter than a lease."""
    options = {"lease_seconds": 6.0}
    async with (
        engine_on(postgres_url, cluster_url, **options) as first,
        engine_on(postgres_url, cluster_url, **options) as second,
    ):
        sessions = session_id_of(first), session_id_of(second)
        await first.start(leased, "a", id="a")

        etcd_cluster.leader.kill()

        await next_beat_of(first)
        await finish(first, "a")
        assert (session_id_of(first), session_id_of(second)) == sessions
        assert stage.count("a") == 1


async def test_engine_does_not_start_without_its_etcd(postgres_url: str) -> None:
    """An engine without its etcd raises StoreUnavailableError with the reason, and can be entered again."""
    engine = engine_on(postgres_url, "etcd://127.0.0.1:1")

    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match=r"etcd://127.0.0.1:1/outlive is unavailable: .*refused"):
            await engine.__aenter__()


@pytest.mark.parametrize("lease", ["etcd:", "etcd://", "etcds://a?key=b", "etcd://me:s3cret@a:0"])
def test_bad_address_is_refused_when_the_engine_is_made(lease: str) -> None:
    """Nothing is opened."""
    with pytest.raises(LeaseUrlError) as refused:
        outlive.Engine("memory:", worker=WorkerOptions(lease=lease))

    assert "s3cret" not in str(refused.value)


async def test_a_doctor_says_whether_etcd_answers(
    etcd_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the setting that names it, and also if no store can be looked at."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OUTLIVE_STORE", "memory:")
    monkeypatch.setenv("OUTLIVE_WORKER_LEASE", etcd_url)
    async with outlive.Engine("memory:", worker=WorkerOptions(lease=etcd_url)):
        answered = await diagnose(None)
    monkeypatch.setenv("OUTLIVE_WORKER_LEASE", "etcd://127.0.0.1:1")
    silent = await diagnose(None)

    (found,) = [each for each in answered if each.check == "leases"]
    assert (found.level.value, "1 worker has a key" in found.said) == ("ok", True), found
    (found,) = [each for each in silent if each.check == "leases"]
    assert (found.level.value, "worker.lease" in found.advice) == ("problem", True), found
