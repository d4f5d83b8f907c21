"""The schema and the file: made once, by anyone, whatever happens; nothing else is ever touched."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from outlive._kernel.store.sqlite import SqliteStore
from outlive._kernel.store.sqlite.migrate import migrations
from outlive.errors import StoreUnavailableError
from outlive.errors.store import NotADatabaseError, SchemaTooNewError, SchemaTooOldError
from outlive.testing.clock import ManualClock
from outlive_conformance.suite.builders import begin, get_run

Spawn = Callable[..., Any]


async def test_eight_processes_make_one_schema(path: Path, clock: ManualClock, spawn: Spawn) -> None:
    """One of eight processes that start at once migrates, and each can write when it has opened the store."""
    children = [spawn("create", path, f"run-{number}") for number in range(8)]
    for child in children:
        assert child.hear() == "ready"
    for child in children:
        child.say()

    assert [child.hear() for child in children] == ["done"] * 8
    versions = [version for (version,) in apsw.Connection(str(path)).execute("SELECT version FROM outlive_migrations")]
    assert versions == list(range(1, len(migrations()) + 1))
    store = SqliteStore(path, clock=clock)
    await store.open()
    assert len(await store.find_runs([f"run-{number}" for number in range(8)])) == 8
    await store.close()


async def test_a_migration_killed_at_any_statement_is_done_by_the_next_one(
    path: Path, clock: ManualClock, spawn: Spawn
) -> None:
    """Whatever the dead left behind, the next process opens it and writes."""
    deaths, last_exit = map(int, spawn("die_at_every_statement", path).hear().split())

    assert deaths > 30
    assert last_exit == 0
    left = sorted(path.parent.glob(f"{path.name}-*[0-9]"))
    assert len(left) == deaths + 1
    for file in left:
        store = SqliteStore(file, clock=clock)
        await store.open()
        await begin(store)
        await store.close()
        assert apsw.Connection(str(file)).pragma("integrity_check") == "ok"


async def test_newer_schema_is_refused_before_anything_is_written(path: Path, clock: ManualClock) -> None:
    """An older release says what to do and leaves the file as it is."""
    await make_database(path, clock)
    later = len(migrations()) + 1
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO outlive_migrations VALUES (?, 'later', 0)", (later,))
    connection.close()
    before = look(path)

    with pytest.raises(SchemaTooNewError, match="upgrade outlive") as caught:
        await SqliteStore(path, clock=clock).open()

    assert (caught.value.found, caught.value.known) == (later, later - 1)
    assert look(path) == before


async def test_older_schema_is_left_as_it_is_by_those_who_only_read(path: Path, clock: ManualClock) -> None:
    """A command that only looks must not migrate the store of the workers of an earlier release."""
    await make_database(path, clock)
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM outlive_migrations WHERE version = ?", (len(migrations()),))
    connection.close()
    before = look(path)

    with pytest.raises(SchemaTooOldError, match="start an engine of this release") as caught:
        await SqliteStore(path, clock=clock).open(migrate=False)

    assert (caught.value.found, caught.value.known) == (len(migrations()) - 1, len(migrations()))
    assert look(path) == before


async def test_no_file_is_made_by_those_who_only_read(path: Path, clock: ManualClock) -> None:
    """Not even an empty one."""
    with pytest.raises(StoreUnavailableError, match="no such file"):
        await SqliteStore(path, clock=clock).open(migrate=False)

    assert not path.exists()


@pytest.mark.parametrize("content", [b"Dear diary,\n", b"x" * 100_000, b"SQLite format 3\x00" + b"\xff" * 5_000])
async def test_file_of_another_kind_is_left_as_it_is(path: Path, clock: ManualClock, content: bytes) -> None:
    """Naming the wrong file costs nothing."""
    path.write_bytes(content)

    with pytest.raises(NotADatabaseError, match="name another file"):
        await SqliteStore(path, clock=clock).open()

    assert look(path) == {path.name: content}


@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_database_of_another_program_is_left_as_it_is(path: Path, clock: ManualClock, mode: str) -> None:
    """A database of another program is refused and left as it is, even while that program has it open with a WAL."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", mode)
    connection.execute("CREATE TABLE customers (name TEXT); INSERT INTO customers VALUES ('Ann')")
    before = path.read_bytes()

    with pytest.raises(NotADatabaseError, match="another program"):
        await SqliteStore(path, clock=clock).open()

    assert path.read_bytes() == before
    assert connection.execute("SELECT name FROM customers").fetchall() == [("Ann",)]
    connection.close()
    assert apsw.Connection(str(path)).execute("SELECT name FROM sqlite_schema").fetchall() == [("customers",)]


async def test_empty_file_becomes_a_database(path: Path, clock: ManualClock) -> None:
    """`touch orders.db` is a way to begin."""
    path.touch()

    await make_database(path, clock)

    assert path.stat().st_size > 0


async def test_file_is_marked_as_ours(path: Path, clock: ManualClock) -> None:
    """`file orders.db` and other programs can tell whose it is."""
    await make_database(path, clock)

    assert path.read_bytes()[68:72] == b"Outl"


async def test_folder_in_place_of_a_file_is_refused(tmp_path: Path, clock: ManualClock) -> None:
    """A folder in place of a file is refused with the advice to name a file in it."""
    with pytest.raises(StoreUnavailableError, match="name a file in it"):
        await SqliteStore(tmp_path, clock=clock).open()


async def test_missing_folder_is_not_made(tmp_path: Path, clock: ManualClock) -> None:
    """A misspelt path is an error, which names the command that helps if the path was meant."""
    with pytest.raises(StoreUnavailableError, match=f"mkdir -p {tmp_path}/a/b"):
        await SqliteStore(tmp_path / "a" / "b" / "c.db", clock=clock).open()

    assert list(tmp_path.iterdir()) == []


async def test_folder_that_cannot_be_written_is_reported(reachable: Path, spawn: Spawn) -> None:
    """There is no file yet, and this user cannot make one."""
    reachable.chmod(0o555)

    (answer,) = spawn("open_as_nobody", reachable / "outlive.db").hear_all()

    assert answer.startswith("StoreUnavailableError")
    assert "needs the right to write" in answer


@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o777), (0o000, 0o777), (0o666, 0o555)])
async def test_file_that_cannot_be_written_is_reported(
    reachable: Path, clock: ManualClock, spawn: Spawn, file_mode: int, folder_mode: int
) -> None:
    """The file is there and this user lacks a right to it or to its folder, where the WAL has to be."""
    path = reachable / "outlive.db"
    await make_database(path, clock)
    before = path.read_bytes()
    path.chmod(file_mode)
    reachable.chmod(folder_mode)

    (answer,) = spawn("open_as_nobody", path).hear_all()

    assert answer.startswith("StoreUnavailableError")
    assert "needs the right to write" in answer
    path.chmod(0o600)
    assert path.read_bytes() == before


def test_files_are_for_their_owner_only(path: Path, spawn: Spawn) -> None:
    """Journals hold what users hold dear; no umask makes them public."""
    *files, end = spawn("create_without_umask", path).hear_all()

    assert end == "end"
    assert files == [f"outlive.db{suffix} 0o600" for suffix in ("", "-shm", "-wal", "-workers")]


async def test_relative_path_is_meant_from_here(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that changes its folder later goes on with the same file."""
    monkeypatch.chdir(tmp_path)
    store = SqliteStore("outlive.db", clock=clock)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")

    await store.open()
    await begin(store)
    await get_run(store, "run-1")
    await store.close()

    assert (tmp_path / "outlive.db").exists()


async def make_database(path: Path, clock: ManualClock) -> None:
    """Leave a database behind, with nothing in it."""
    store = SqliteStore(path, clock=clock)
    await store.open()
    await store.close()


def look(path: Path) -> dict[str, bytes]:
    """Everything in the folder of the file."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user can reach, as those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "folder"
        folder.mkdir()
        yield folder
        folder.chmod(0o755)


async def test_database_of_the_first_schema_is_brought_up_to_date(path: Path, clock: ManualClock) -> None:
    """Its runs are there, and have said nothing of themselves yet."""
    first = migrations()[0]
    with apsw.Connection(str(path)) as connection:
        connection.execute(first.read_text("utf-8"))
        connection.execute("INSERT INTO outlive_migrations VALUES (1, ?, 0)", (first.stem,))
        connection.execute(
            "INSERT INTO outlive_runs (id, journal, number, root_id, workflow, version, nonce, status, owner, epoch,"
            " attempts, created_at, updated_at, reason)"
            " VALUES ('run-1', 1, 0, 'run-1', 'greet', 1, 7, 'pending', '', 0, 0, 5, 5, '')"
        )
    connection.close()

    store = SqliteStore(path, clock=clock)
    await store.open()
    run = await store.find_run("run-1")
    await store.close()

    assert run is not None
    assert (run.nonce, run.published) == (7, None)


@pytest.mark.parametrize("version", range(1, len(migrations())))
async def test_schema_is_the_same_from_every_version(path: Path, clock: ManualClock, version: int) -> None:
    """A file of an earlier version and a new file cannot be distinguished."""
    earlier = path.with_name("earlier.db")
    with apsw.Connection(str(earlier)) as connection:
        for number, file in enumerate(migrations()[:version], 1):
            connection.execute(file.read_text("utf-8"))
            connection.execute("INSERT INTO outlive_migrations VALUES (?, ?, 0)", (number, file.stem))
    connection.close()

    await make_database(path, clock)
    await make_database(earlier, clock)

    assert schema_of(earlier) == schema_of(path)


def schema_of(path: Path) -> set[tuple[Any, ...]]:
    """Tables with their columns, and indexes."""
    connection = apsw.Connection(str(path))
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table'"
    columns = f"SELECT tables.name, part.* FROM ({tables}) AS tables, pragma_table_xinfo(tables.name) AS part"
    indexes = "SELECT type, name, sql FROM sqlite_schema WHERE type <> 'table'"
    found = {*connection.execute(columns).fetchall(), *connection.execute(indexes).fetchall()}
    connection.close()
    return found
