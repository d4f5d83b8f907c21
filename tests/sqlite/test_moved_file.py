"""The file is deleted, moved or replaced while a store has it open: nothing is acknowledged, and nothing is read."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from outlive._kernel.model import RunFilter
from outlive._kernel.store.sqlite import SqliteStore
from outlive._kernel.store.sqlite.connection import Session
from outlive.errors import StoreError
from outlive.errors.store import StoreMovedError
from outlive_conformance.suite.builders import begin, blob, claim, hire, message, send, stepped
from tests.sqlite.threads import in_reader

Open = Callable[[], Awaitable[SqliteStore]]


def delete(path: Path) -> None:
    """As `rm` does it."""
    path.unlink()


def delete_all(path: Path) -> None:
    """With its side files."""
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def move(path: Path) -> None:
    """As `mv` does it."""
    path.rename(path.with_name("elsewhere.db"))


def replace(path: Path) -> None:
    """As a backup is restored."""
    backup = path.with_name("backup.db")
    shutil.copy(path, backup)
    backup.replace(path)


def delete_journal(path: Path) -> None:
    """Only what was committed last, which lies beside the file."""
    path.with_name(f"{path.name}-wal").unlink()


HARMS = [delete, delete_all, move, replace, delete_journal]


@pytest.mark.parametrize("harm", HARMS)
async def test_no_write_is_acknowledged(store: SqliteStore, path: Path, harm: Callable[[Path], None]) -> None:
    """A start, a step, a message, a blob, a claim and a checkpoint are refused with what to do."""
    await hire(store, "worker-a")
    tree = await begin(store, "run-1")
    harm(path)

    with pytest.raises(StoreMovedError, match="start it again"):
        await begin(store, "run-2")
    for write in (
        tree.step(),
        send(store, message(store, "run-1")),
        store.put_blobs([blob(b"x" * 100)]),
        claim(store, "worker-a"),
        store.clear_checkpoints("run-1"),
        store.end_session("worker-a"),
    ):
        with pytest.raises(StoreMovedError):
            await write


@pytest.mark.parametrize("harm", HARMS)
async def test_nothing_is_read(store: SqliteStore, path: Path, harm: Callable[[Path], None]) -> None:
    """A store whose file is gone refuses to read, because the next process will not see that file."""
    tree = await begin(store, "run-1")
    assert await store.find_run("run-1") is not None
    harm(path)

    for read in (store.find_run("run-1"), store.read_journal(tree.journal), store.list_runs(RunFilter())):
        with pytest.raises(StoreMovedError):
            await read


@pytest.mark.parametrize("harm", HARMS)
async def test_no_lease_is_renewed(store: SqliteStore, path: Path, harm: Callable[[Path], None]) -> None:
    """The connection that renews leases looks too."""
    await hire(store, "worker-a")
    beat = store.open_beat("worker-a")
    try:
        assert beat.renew(lease_seconds=10)
        harm(path)
        with pytest.raises(StoreMovedError):
            beat.renew(lease_seconds=10)
    finally:
        beat.close()


async def test_a_transaction_of_a_step_is_not_committed(store: SqliteStore, path: Path) -> None:
    """It was begun before."""
    tree = await begin(store, "run-1")
    transaction = await store.begin()
    delete(path)

    with pytest.raises(StoreMovedError):
        await transaction.commit([tree.change(stepped(store))])


async def test_a_file_that_comes_back_is_used_again(store: SqliteStore, path: Path) -> None:
    """A file that comes back under its old name is used again with nothing lost."""
    tree = await begin(store, "run-1")
    move(path)
    with pytest.raises(StoreError):
        await tree.step()
    path.with_name("elsewhere.db").rename(path)

    await begin(store, "run-2")
    assert (await store.find_runs(["run-1", "run-2"])).keys() == {"run-1", "run-2"}


async def test_a_new_connection_does_not_take_another_file_for_the_old_one(store: SqliteStore, path: Path) -> None:
    """A store whose connection was lost opens the file that it had, and no other one of the same name."""
    await begin(store, "run-1")

    def lose_connection(session: Session) -> None:
        replace(path)
        session.close()  # As after an I/O error.

    with pytest.raises(StoreMovedError):
        await in_reader(store, lose_connection)
    with pytest.raises(StoreMovedError):
        await store.find_run("run-1")


async def test_second_library_in_the_process_does_not_delete_the_wal(store: SqliteStore, path: Path) -> None:
    """Python's `sqlite3` closes its connection while the store writes: what is committed before and after is there."""
    await begin(store, "run-1")
    for _ in range(2):
        with closing(sqlite3.connect(path)) as other:
            assert other.execute("SELECT count(*) FROM outlive_runs").fetchone() == (1,)
    await begin(store, "run-2")

    assert await in_another_process(path) == "run-1 run-2"


async def test_second_store_of_the_process_keeps_the_wal_when_one_closes(store: SqliteStore, path: Path) -> None:
    """They share what keeps other libraries away."""
    second = SqliteStore(path, clock=store.now)
    await second.open()
    await second.close()
    await begin(store, "run-1")
    sqlite3.connect(path).close()
    await begin(store, "run-2")

    assert await in_another_process(path) == "run-1 run-2"


async def test_wal_goes_with_the_last_store(path: Path) -> None:
    """The last store of a file removes its WAL, and another process reads the file."""
    store = SqliteStore(path, clock=lambda: 1)
    await store.open()
    await begin(store, "run-1")
    await store.close()

    assert not path.with_name(f"{path.name}-wal").exists()
    assert await in_another_process(path) == "run-1"


async def test_connection_of_a_user_keeps_its_locks_when_the_store_closes(path: Path) -> None:
    """Closing any descriptor of the file would drop them, and another process would take the WAL away."""
    store = SqliteStore(path, clock=lambda: 1)
    await store.open()
    await begin(store, "run-1")
    with closing(apsw.Connection(str(path))) as own:
        assert own.execute("SELECT count(*) FROM outlive_runs").fetchone() == (1,)
        await store.close()
        assert await in_another_process(path) == "run-1"

        assert path.with_name(f"{path.name}-wal").exists()


async def in_another_process(path: Path) -> str:
    """The ids of the runs, as a process sees them that has nothing to do with this one."""
    program = (
        "import apsw, sys\n"
        "print(*sorted(id for (id,) in apsw.Connection(sys.argv[1]).execute('SELECT id FROM outlive_runs')))"
    )
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    return ended.stdout.strip()


@pytest.mark.parametrize("is_loaded", [True, False], ids=["loaded", "not-loaded"])
async def test_error_names_another_library_only_where_one_is_loaded(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch, *, is_loaded: bool
) -> None:
    """Python's `sqlite3` may have deleted the -wal file; a process without it has another cause."""
    if not is_loaded:
        monkeypatch.delitem(sys.modules, "_sqlite3")
    await begin(store, "a")
    delete_journal(path)
    with pytest.raises(StoreMovedError) as raised:
        await begin(store, "b")

    assert raised.value.has_other_library is is_loaded
    assert ("has loaded Python's sqlite3" in str(raised.value)) is is_loaded
