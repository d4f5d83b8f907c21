"""What was answered has been synced, whichever verb it was and whichever connection wrote it.

A kill loses nothing that was handed to the system, so no test that kills can see a missing sync. Only the order of
writes, syncs and answers shows it.
"""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from outlive._kernel.journal.checkpoint import CheckpointBody, seal_checkpoint
from outlive._kernel.store.sqlite import SqliteStore, writer
from outlive._kernel.store.sqlite.connection import LockWait, Role, Session, connect
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import LEASE_SECONDS, begin, blob, claim, hire, message, send, stepped
from outlive_conformance.suite.cells import add
from outlive_conformance.suite.transactions import begin_noting
from tests.sqlite.disk import WatchedDisk
from tests.sqlite.threads import in_writer


@pytest.mark.parametrize("role", list(Role), ids=lambda role: role.value)
def test_every_connection_waits_for_the_disk(store: SqliteStore, path: Path, role: Role) -> None:
    """A commit of any of them survives the loss of power; on macOS that takes a sync of another kind."""
    connection = connect(path, role, LockWait())

    settings = {name: connection.pragma(name) for name in ("journal_mode", "synchronous", "fullfsync")}
    connection.close()

    assert settings == {"journal_mode": "wal", "synchronous": 2, "fullfsync": 1}


async def test_every_verb_is_synced_before_it_is_answered(
    on_disk: SqliteStore, disk: WatchedDisk, clock: ManualClock
) -> None:
    """Every verb that changes the store is answered only after its write was synced to the disk."""
    store, unsynced = on_disk, list[str]()

    def answered(verb: str) -> None:
        if disk.unsynced or "sync wal" not in disk.log:
            unsynced.append(verb)
        disk.log.clear()

    answered("open")
    tree = await begin(store)
    answered("start")
    await tree.step()
    answered("a row")
    await tree.step(blobs=[blob(b"x" * 10_000)])
    answered("a batch")
    await tree.suspend()
    answered("a suspension")
    await send(store, message(store, "run-1"))
    answered("deliver")
    await store.put_blobs([blob(b"y")])
    answered("put_blobs")
    await hire(store, "worker-a")
    answered("register_worker")
    assert await claim(store, "worker-a") == ["run-1"]
    answered("claim_runs")
    beat = store.open_beat("worker-a")
    clock.advance(seconds=1)
    assert beat.renew(lease_seconds=LEASE_SECONDS)
    answered("renew")
    beat.close()
    await tree.catch_up()
    transaction = await begin_noting(store, "mine")
    await transaction.commit([tree.change(stepped(store))])
    answered("the commit of a step's transaction")
    await store.change_cell("cell", add)
    answered("change_cell")
    await store.append_checkpoint("run-9", seal_checkpoint("run-9", 0, CheckpointBody(state="A"), None))
    answered("append_checkpoint")
    await store.clear_checkpoints("run-9")
    answered("clear_checkpoints")
    await store.end_session("worker-a")
    answered("end_session")

    assert unsynced == []
    assert {flags & ~apsw.SQLITE_SYNC_DATAONLY for flags in disk.sync_flags} == {apsw.SQLITE_SYNC_FULL}


async def test_connection_that_was_made_again_waits_for_the_disk_too(on_disk: SqliteStore, disk: WatchedDisk) -> None:
    """After an I/O error the writer goes on with another connection."""
    tree = await begin(on_disk)
    await in_writer(on_disk, Session.close)
    disk.log.clear()

    await tree.step()

    assert disk.log[-1] == "sync wal"


async def test_checkpoint_is_made_of_what_is_synced_and_is_synced_itself(
    on_disk: SqliteStore, disk: WatchedDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a loss of power could leave pages in the file whose transaction is lost, or a WAL that was overwritten
    before its pages were in the file."""
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 0)
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES_MAX", 0)
    tree = await begin(on_disk)
    disk.log.clear()
    for _ in range(3):
        await tree.step()  # The writer makes a checkpoint before it takes the next one.

    unsynced: set[str] = set()
    for happened in disk.log:
        verb, kind = happened.split()
        assert verb == "sync" or not unsynced - {kind}, disk.log
        unsynced = unsynced | {kind} if verb == "write" else unsynced - {kind}
    assert disk.log.count("sync db") >= 2
