"""A file that cannot be opened, or not yet: what is said, that nothing is left behind, and that the next try works."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from outlive._kernel.store.sqlite import SqliteStore, connection, file, migrate
from outlive._kernel.store.sqlite.connection import LockWait, Role, Session, translate
from outlive._kernel.store.sqlite.lock import WorkerLocks
from outlive.errors import StoreUnavailableError
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import begin


async def try_to_open(path: Path, clock: ManualClock, reason: str) -> None:
    """Opening fails for this reason, and no thread is left."""
    before = set(threading.enumerate())
    with pytest.raises(StoreUnavailableError, match=reason):
        await SqliteStore(path, clock=clock).open()

    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=10)
        assert not thread.is_alive()


async def open_and_write(path: Path, clock: ManualClock) -> None:
    """Everything works."""
    store = SqliteStore(path, clock=clock)
    await store.open()
    await begin(store)
    await store.close()


async def test_neighbour_that_makes_the_file_is_waited_for(
    path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite itself does not wait when a file is to be opened as ours for the first time."""
    neighbour = apsw.Connection(str(path))
    neighbour.execute("BEGIN IMMEDIATE")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            neighbour.execute("ROLLBACK")

    monkeypatch.setattr(connection, "pause", pause)
    await open_and_write(path, clock)

    assert len(pauses) == 2
    neighbour.close()


async def test_neighbour_that_never_lets_go_is_named(
    path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that cannot be opened is not tried for ever."""
    monkeypatch.setattr(migrate, "WAL_TRIES_MAX", 0)

    await try_to_open(path, clock, "other processes keep it locked")


@pytest.fixture
def disk_without_shared_memory() -> Iterator[None]:
    """A file system on which SQLite cannot share memory between processes."""
    before = apsw.vfs_names()[0]
    apsw.set_default_vfs("unix-none")
    yield
    apsw.set_default_vfs(before)


async def test_file_system_without_shared_memory_is_refused(
    path: Path, clock: ManualClock, disk_without_shared_memory: None
) -> None:
    """Two processes could not see each other's commits."""
    await try_to_open(path, clock, "use a local disk")


async def test_network_file_system_is_refused(path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before there is a file."""
    mounts = f"40 22 0:35 / {path.parent} rw,relatime shared:2 - nfs4 server:/export rw\n"
    monkeypatch.setattr(file, "read_mounts", lambda: mounts)

    await try_to_open(path, clock, r"network file system \(nfs4\)")

    assert not path.exists()


async def test_name_that_no_file_can_have_is_refused(path: Path, clock: ManualClock) -> None:
    """In the words of the system, and as an error of ours."""
    await try_to_open(path.with_name("x" * 300), clock, "too long")


async def test_store_whose_reader_cannot_open_the_file_leaves_no_writer_behind(
    path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process has run out of descriptors, say; the next try works."""
    connect = connection.connect

    def connect_writer(path: Path, role: Role, lock_wait: LockWait) -> apsw.Connection:
        if role is Role.READER:
            raise apsw.CantOpenError("unable to open database file")
        return connect(path, role, lock_wait)

    with monkeypatch.context() as patch:
        patch.setattr(connection, "connect", connect_writer)
        await try_to_open(path, clock, "right to write to the file and to its folder")

    await open_and_write(path, clock)


async def test_connection_that_cannot_be_set_up_is_closed(
    path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would keep its locks until the interpreter happens to free it."""
    await open_and_write(path, clock)
    made: list[apsw.Connection] = []
    connecting = apsw.Connection

    def make(*args: Any, **options: Any) -> apsw.Connection:
        made.append(connecting(*args, **options))
        return made[-1]

    monkeypatch.setattr(apsw, "Connection", make)
    monkeypatch.setattr(connection, "sql", lambda _: "no statement")
    with pytest.raises(apsw.SQLError):
        connection.connect(path, Role.BEAT, LockWait())

    with pytest.raises(apsw.ConnectionClosedError):
        made[0].in_transaction  # noqa: B018 (asking is what fails)


class Broken:
    """A connection that cannot even roll back."""

    in_transaction = True

    def __init__(self) -> None:
        self.is_closed = False

    def execute(self, _statement: str) -> None:
        """The disk is gone."""
        raise apsw.IOError("disk I/O error")

    def close(self, force: bool) -> None:  # noqa: FBT001 (as apsw has it)
        """It is let go of without asking for more."""
        assert force
        self.is_closed = True


def test_an_error_of_the_disk_says_where_to_look(path: Path) -> None:
    """SQLite says no more than that when a disk is too full for the file of its locks."""
    assert "its disk, which may be full" in str(translate(apsw.IOError("disk I/O error"), path))


def test_a_full_disk_is_named_in_plain_words(path: Path) -> None:
    """SQLite calls a step of a backup that found no room "not an error"."""
    said = str(translate(apsw.FullError("not an error"), path))

    assert said.endswith("is unavailable: database or disk is full; make room on its disk")


async def test_connection_that_cannot_roll_back_is_thrown_away(path: Path, clock: ManualClock) -> None:
    """A connection that cannot roll back is closed and replaced, so that nothing half done becomes part of the next
    transaction."""
    await open_and_write(path, clock)
    session, broken = Session(path, clock=clock, role=Role.WRITER), Broken()
    session.open()
    session.close()
    vars(session)["_connection"] = broken

    session.roll_back()

    assert broken.is_closed
    assert not session.connection.in_transaction
    session.close()


def test_locks_of_a_file_that_was_replaced_meanwhile_are_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """We would hold one and ask for another, and take the living for dead: only leases count then."""
    path = tmp_path / "outlive.db-workers"
    opening, opened = os.open, []

    def open_another(*args: Any) -> int:
        path.unlink(missing_ok=True)
        opened.append(opening(*args))
        return opened[-1]

    locks = WorkerLocks(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_another)
        locks.open()

    assert len(opened) == 2
    assert locks.take("worker-a") is None
    for descriptor in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)
    locks.open()
    assert locks.take("worker-a") == locks.inode
    assert locks.held == {"worker-a"}
    assert locks.is_held("worker-a")
    for _ in range(2):
        locks.drop("worker-a")
        assert not locks.held
        assert not locks.is_held("worker-a")
    locks.close()
