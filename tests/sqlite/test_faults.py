"""What a store says when the disk, the file or a neighbour lets it down, and that it goes on afterwards."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.sqlite import SqliteStore, connection, file, writer
from outlive._kernel.store.sqlite import store as store_module
from outlive.errors import ConfigurationError, StoreError, StoreUnavailableError
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import LEASE_SECONDS, begin, blob, claim, hire, read_events
from tests.sqlite.disk import WatchedDisk, failing, nothing_fails
from tests.sqlite.threads import on_writer

Open = Callable[[], Awaitable[SqliteStore]]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MiB, where root can have one; any other user gets a file that may not grow."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode == 0:
        yield folder
        subprocess.run(["umount", str(folder)], check=True)
        return

    def limit(connection: apsw.Connection) -> None:
        connection.pragma("max_page_count", 200)

    apsw.connection_hooks.append(limit)
    yield folder
    apsw.connection_hooks.remove(limit)


async def test_full_disk_refuses_and_forgets_nothing(small_disk: Path, clock: ManualClock) -> None:
    """A store on a full disk refuses writes, goes on reading, and has every acknowledged event after it was
    reopened."""
    store = SqliteStore(small_disk / "outlive.db", clock=clock)
    await store.open()
    tree = await begin(store)

    async def fill() -> None:
        for number in range(1_000):
            await tree.step(blobs=[blob(b"x" * 50_000 + str(number).encode())])

    with pytest.raises(StoreUnavailableError, match="make room on its disk"):
        await fill()

    acknowledged = tree.seq + 1
    assert acknowledged > 5
    assert len(await read_events(tree)) == acknowledged
    assert await store.find_run("run-1") is not None
    await store.close()
    reopened = SqliteStore(small_disk / "outlive.db", clock=clock)
    await reopened.open()
    assert len(await read_events(tree.twin(reopened))) == acknowledged
    await reopened.close()


async def test_space_that_comes_back_is_used(store: SqliteStore) -> None:
    """A store that was full writes again when there is room, without a restart."""
    tree = await begin(store)
    pages = await on_writer(store, lambda connection: connection.pragma("page_count"))
    await on_writer(store, lambda connection: connection.pragma("max_page_count", pages))
    with pytest.raises(StoreUnavailableError):
        await tree.step(blobs=[blob(b"x" * 100_000)])

    await on_writer(store, lambda connection: connection.pragma("max_page_count", pages + 1_000))
    await tree.step(blobs=[blob(b"x" * 100_000)])

    assert len(await read_events(tree)) == 2


def test_failed_write_in_a_commit_is_unknown_and_the_store_goes_on(path: Path, spawn: Callable[..., Any]) -> None:
    """An I/O error while committing is neither a yes nor a no; the connection is made again."""
    rows, batch, read, last = spawn("fail_to_write", path).hear_all()

    assert rows.startswith("True ")
    assert batch.startswith("True ")
    assert "while committing" in rows
    assert (read, last) == ("1", f"{Outcome.COMMITTED.value} 2")


async def test_checkpoint_that_fails_is_made_later_and_delays_no_commit(
    on_disk: SqliteStore, disk: WatchedDisk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A checkpoint that fails delays no commit, which is in the WAL; the writer makes another connection and the
    checkpoint when the disk can."""
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 0)
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES_MAX", 0)
    tree = await begin(on_disk)
    opened = disk.opened
    disk.fail = failing("write db", apsw.IOError("disk I/O error"))
    await tree.step()
    await tree.step()
    assert "the checkpoint has to wait: disk I/O error" in caplog.text
    assert disk.opened > opened
    disk.log.clear()

    disk.fail = nothing_fails
    for _ in range(4):  # A checkpoint comes behind the answer, and a new connection counts its pages from 0.
        await tree.step()

    assert "sync db" in disk.log
    assert len(await read_events(tree)) == 7


async def test_writer_lives_on_when_it_fails_between_two_jobs(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Everybody waits for this thread: if it ended, every verb would hang."""

    def fail(self: writer.Writer, *, is_busy: bool) -> None:
        raise RuntimeError("planned")

    monkeypatch.setattr(writer.Writer, "rest", fail)
    tree = await begin(store)
    async with asyncio.timeout(10):
        await tree.step()

    assert "RuntimeError: planned" in caplog.text


async def test_neighbour_that_keeps_the_lock_is_reported(
    path: Path, open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was written, and as soon as the lock is free everything is as before."""
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.01)
    store = await open_store()
    tree = await begin(store)
    neighbour = apsw.Connection(str(path))
    neighbour.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailableError, match="another process"):
        await tree.step()
    with pytest.raises(StoreUnavailableError, match="another process"):
        await hire(store, "worker-a")
    assert len(await store.read_journal(tree.journal)) == 1

    neighbour.execute("ROLLBACK")
    await tree.step()
    neighbour.close()


async def test_store_on_a_locked_file_is_closed_all_the_same(
    path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store whose file another process has locked is closed in time, and every queued verb is refused."""
    monkeypatch.setattr(store_module, "CLOSE_SECONDS", 0.05)
    store = SqliteStore(path, clock=clock)
    await store.open()
    trees = [await begin(store, f"run-{number}") for number in range(3)]
    await hire(store, "worker-a")
    neighbour = apsw.Connection(str(path))
    neighbour.execute("BEGIN IMMEDIATE")
    under_way: list[asyncio.Future[Any]] = []
    for tree in trees:  # Each in a transaction of its own, one after the other.
        under_way.append(asyncio.ensure_future(tree.step()))
        await asyncio.sleep(0)
        under_way.append(asyncio.ensure_future(store.begin()))
        await asyncio.sleep(0)

    began_at = time.monotonic()
    await store.close()

    assert time.monotonic() - began_at < connection.BUSY_SECONDS
    for each in under_way:
        with pytest.raises(StoreUnavailableError, match="another process"):
            await each
    neighbour.close()


def test_lock_is_waited_for_by_the_clock_and_not_by_the_number_of_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with much to do a short pause takes long; the message says 5 s, and that is true."""
    clock = ManualClock(0)
    monkeypatch.setattr(connection, "pause", lambda seconds: clock.advance(seconds=100 * seconds))
    monkeypatch.setattr(connection, "time", SimpleNamespace(monotonic=lambda: clock() / 1e6))
    lock_wait = connection.LockWait()

    tries = next(tries for tries in itertools.count() if not lock_wait.wait(tries))

    assert connection.BUSY_SECONDS == clock() / 1e6
    assert lock_wait.wait(0), "and the next one has as much time again"
    assert tries > 1


async def test_damaged_page_is_reported(path: Path, clock: ManualClock) -> None:
    """The message names the file and says what helps."""
    store = SqliteStore(path, clock=clock)
    await store.open()
    for number in range(200):
        await begin(store, f"run-{number}")
    await store.close()
    with path.open("r+b") as file:
        file.seek((find_root_page(path, "outlive_runs_id") - 1) * 4_096)
        file.write(b"\xaa" * 4_096)

    await store.open()
    with pytest.raises(StoreError, match="restore a backup"):
        await store.find_runs([f"run-{number}" for number in range(200)])
    await store.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE outlive_runs SET waits = '[{' WHERE id = 'run-2'",
        "UPDATE outlive_runs SET status = 'confused' WHERE id = 'run-2'",
        "DELETE FROM outlive_events WHERE journal = (SELECT journal FROM outlive_runs WHERE id = 'run-2')",
        "UPDATE outlive_events SET is_last = 1 WHERE journal = (SELECT journal FROM outlive_runs WHERE id = 'run-2')",
    ],
)
async def test_one_damaged_run_does_not_keep_others_from_being_claimed(
    path: Path, store: SqliteStore, damage: str
) -> None:
    """One bad run hurts only itself."""
    await hire(store, "worker-a")
    for number in (1, 2, 3):
        await begin(store, f"run-{number}")
    apsw.Connection(str(path)).execute(damage)

    assert await claim(store, "worker-a", limit=1) == ["run-1"]
    assert await claim(store, "worker-a", limit=1) == ["run-3"]


@pytest.mark.parametrize("replaced", [False, True])
async def test_file_that_is_gone_stops_the_beat(path: Path, store: SqliteStore, replaced: bool) -> None:  # noqa: FBT001 (a parameter of the test)
    """A worker must not go on writing to a file that no other process can see."""
    await hire(store, "worker-a")
    beat = store.open_beat("worker-a")
    assert beat.renew(lease_seconds=LEASE_SECONDS)
    path.rename(path.with_name("moved.db"))
    if replaced:
        path.touch()

    with pytest.raises(StoreUnavailableError, match="replaced" if replaced else "gone"):
        beat.renew(lease_seconds=LEASE_SECONDS)
    beat.close()


async def test_beat_that_meets_a_broken_disk_says_so_and_goes_on_with_another_connection(
    on_disk: SqliteStore, disk: WatchedDisk, clock: ManualClock
) -> None:
    """A renewal that meets a broken disk raises, and the next one has another connection, because the first no longer
    knows the file."""
    await hire(on_disk, "worker-a")
    beat = on_disk.open_beat("worker-a")
    assert beat.renew(lease_seconds=LEASE_SECONDS)
    opened = disk.opened
    clock.advance(seconds=1)
    disk.fail = failing("write wal", apsw.IOError("disk I/O error"))
    with pytest.raises(StoreUnavailableError, match="disk I/O error") as refused:
        beat.renew(lease_seconds=LEASE_SECONDS)
    assert str(refused.value).count("is unavailable") == 1

    disk.fail = nothing_fails
    assert beat.renew(lease_seconds=LEASE_SECONDS)
    assert disk.opened == opened + 1
    beat.close()


async def test_beat_that_finds_the_file_locked_says_so_and_keeps_its_connection(
    on_disk: SqliteStore, disk: WatchedDisk, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is wrong with it."""
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.01)
    await hire(on_disk, "worker-a")
    beat = on_disk.open_beat("worker-a")
    assert beat.renew(lease_seconds=LEASE_SECONDS)
    neighbour = apsw.Connection(str(path))
    neighbour.execute("BEGIN IMMEDIATE")
    opened = disk.opened

    with pytest.raises(StoreUnavailableError, match="another process"):
        beat.renew(lease_seconds=LEASE_SECONDS)
    neighbour.execute("ROLLBACK")
    neighbour.close()
    assert beat.renew(lease_seconds=LEASE_SECONDS)

    assert disk.opened == opened
    beat.close()


async def test_beat_that_is_closed_lets_go_of_the_file(path: Path, clock: ManualClock) -> None:
    """The last one to close takes the WAL along; a connection that is left open would keep it there."""
    store = SqliteStore(path, clock=clock)
    await store.open()
    await hire(store, "worker-a")
    beat = store.open_beat("worker-a")
    assert beat.renew(lease_seconds=LEASE_SECONDS)

    beat.close()
    await store.close()

    assert sorted(it.name for it in path.parent.iterdir()) == [path.name, f"{path.name}-workers"]


async def test_beat_gets_through_while_the_writer_is_busy(store: SqliteStore, clock: ManualClock) -> None:
    """A lease is renewed between two commits of the same process."""
    await hire(store, "worker-a")
    trees = [await begin(store, f"run-{number}") for number in range(20)]
    renewed: list[bool] = []

    def keep_renewing() -> None:
        beat = store.open_beat("worker-a")
        renewed.extend(beat.renew(lease_seconds=LEASE_SECONDS) for _ in range(20))
        beat.close()

    thread = threading.Thread(target=keep_renewing)
    thread.start()
    while thread.is_alive():
        await asyncio.gather(*(tree.step() for tree in trees))

    assert renewed == [True] * 20


async def test_old_sqlite_is_refused(path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """In it, two processes could damage the file."""
    monkeypatch.setattr(apsw, "SQLITE_VERSION_NUMBER", 3_051_002)

    with pytest.raises(ConfigurationError, match="pip install --upgrade apsw"):
        await SqliteStore(path, clock=clock).open()

    assert not path.exists()


async def test_closed_store_says_so(path: Path, clock: ManualClock) -> None:
    """Before it was opened, and after it was closed."""
    store = SqliteStore(path, clock=clock)
    with pytest.raises(StoreError, match="not open"):
        await store.find_run("run-1")
    await store.open()
    await store.close()
    with pytest.raises(StoreError, match="not open"):
        await store.end_session("worker-a")


@pytest.mark.parametrize(("folder", "kind"), [("/data/deep", "nfs4"), ("/data", "nfs4"), ("/home", None), ("/", None)])
def test_network_file_system_is_recognised(folder: str, kind: str | None) -> None:
    """SQLite's locks do not reach other machines."""
    mounts = (
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "40 22 0:35 / /data rw,relatime shared:2 - nfs4 server:/export rw\n"
    )

    assert file.find_network(Path(folder), mounts=mounts) == kind


def find_root_page(path: Path, name: str) -> int:
    """Where a table or an index begins in the file."""
    reading = apsw.Connection(str(path))
    ((page,),) = reading.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,))
    reading.close()
    assert isinstance(page, int)
    return page
