"""Who is alive: the kernel says it at once, the lease says it in the end."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from outlive._kernel.store.sqlite import SqliteStore, lock
from outlive._kernel.store.sqlite.lock import WorkerLocks
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import LEASE_SECONDS, begin, claim, hire

Spawn = Callable[..., Any]
Open = Callable[[], Awaitable[SqliteStore]]


async def test_runs_of_a_killed_worker_are_free_at_once(store: SqliteStore, path: Path, spawn: Spawn) -> None:
    """No clock has to move; and what another worker owns stays with it."""
    await hire(store, "survivor")
    await begin(store, "run-1")
    victim = spawn("work", path, "victim")
    assert victim.hear() == "run-1"
    await begin(store, "run-2")
    neighbour = spawn("work", path, "neighbour")
    assert neighbour.hear() == "run-2"
    assert await claim(store, "survivor") == []

    victim.kill()

    assert [worker.id for worker in await store.list_workers() if worker.is_live] == ["neighbour", "survivor"]
    assert await claim(store, "survivor") == ["run-1"]
    run = await store.find_run("run-1")
    assert run is not None
    assert (run.epoch, run.attempts) == (2, 1)


async def test_runs_of_a_stopped_worker_are_free_when_its_lease_has_run_out(
    store: SqliteStore, path: Path, clock: ManualClock, spawn: Spawn
) -> None:
    """A process that hangs still has its lock; only time can tell."""
    await begin(store, "run-1")
    hanging = spawn("work", path, "hanging")
    assert hanging.hear() == "run-1"
    hanging.signal(signal.SIGSTOP)
    await hire(store, "survivor", lease_seconds=10 * LEASE_SECONDS)

    clock.advance(seconds=LEASE_SECONDS - 0.000_001)
    assert await claim(store, "survivor") == []

    clock.advance(seconds=0.000_001)
    assert await claim(store, "survivor") == ["run-1"]


async def test_forked_child_does_not_keep_its_dead_parent_alive(store: SqliteStore, path: Path, spawn: Spawn) -> None:
    """A pool of processes outlives the worker that made it, and is not the worker."""
    await hire(store, "survivor")
    await begin(store, "run-1")
    parent = spawn("work_and_fork", path, "parent")
    child, claimed = parent.hear().split()
    assert claimed == "run-1"

    os.kill(parent.process.pid, signal.SIGKILL)
    parent.process.wait()

    os.kill(int(child), 0)  # It lives.
    assert await claim(store, "survivor") == ["run-1"]


async def test_worker_of_a_closed_store_lives_as_long_as_its_lease(
    open_store: Open, store: SqliteStore, clock: ManualClock
) -> None:
    """Closing ends no session: that is what retiring is for."""
    leaving = await open_store()
    await hire(leaving, "worker-a")
    await begin(leaving, "run-1", worker="worker-a")
    await leaving.close()
    await hire(store, "worker-b", lease_seconds=10 * LEASE_SECONDS)

    assert await claim(store, "worker-b") == []
    clock.advance(seconds=LEASE_SECONDS)
    assert await claim(store, "worker-b") == ["run-1"]


async def test_worker_that_comes_back_after_retiring_is_alive(open_store: Open, store: SqliteStore) -> None:
    """A second session with the same id takes the lock again."""
    await hire(store, "worker-a")
    await store.end_session("worker-a")
    await hire(store, "worker-a")
    await begin(store, "run-1", worker="worker-a")
    other = await open_store()
    await hire(other, "worker-b")

    assert await claim(other, "worker-b") == []


async def test_lost_lock_file_leaves_the_leases(
    path: Path, open_store: Open, store: SqliteStore, clock: ManualClock
) -> None:
    """Two halves that see different files go by time, instead of taking everything from each other."""
    await hire(store, "worker-a")
    await begin(store, "run-1", worker="worker-a")
    path.with_name("outlive.db-workers").unlink()
    other = await open_store()
    await hire(other, "worker-b", lease_seconds=10 * LEASE_SECONDS)
    await begin(other, "run-2", worker="worker-b")

    assert await claim(other, "worker-b") == []
    assert await claim(store, "worker-a") == []
    clock.advance(seconds=LEASE_SECONDS)
    assert await claim(other, "worker-b") == ["run-1"]


async def test_system_without_such_locks_has_the_leases(
    store: SqliteStore, open_store: Open, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but the speed of a take-over depends on the locks."""
    with monkeypatch.context() as patch:
        patch.setattr(lock, "HAS_BYTE_LOCKS", False)
        plain = await open_store()
    await hire(plain, "worker-a")
    await begin(plain, "run-1", worker="worker-a")
    await hire(store, "worker-b", lease_seconds=10 * LEASE_SECONDS)

    assert await claim(store, "worker-b") == []
    clock.advance(seconds=LEASE_SECONDS)
    assert await claim(store, "worker-b") == ["run-1"]


def test_looking_takes_no_lock(tmp_path: Path) -> None:
    """A process that asks for the lock of a worker neither gets it nor takes it from another."""
    ours, theirs = WorkerLocks(tmp_path / "locks"), WorkerLocks(tmp_path / "locks")
    ours.open()
    theirs.open()

    assert not ours.is_held("a")
    assert theirs.take("a") == ours.inode
    assert [ours.is_held("a"), theirs.is_held("a"), ours.is_held("b")] == [True, True, False]
    assert ours.take("a") is None
    assert theirs.is_held("a")
    theirs.close()
    assert not ours.is_held("a")
    assert ours.take("a") == ours.inode
    ours.close()
