"""Bad stores: wrong URLs, wrong files, full disks, and rows that are not what was written."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import outlive
from outlive._kernel.store.sqlite import SqliteStore
from outlive.errors import StoreUnavailableError
from outlive.errors.store import CorruptJournalError, NotADatabaseError, StoreUrlError
from tests.engine.inside import committer_of, journal_of, store_of
from tests.engine.support import Place, in_time, note, parks, stage, until, waits
from tests.sqlite.threads import on_writer

pytestmark = pytest.mark.every_store


@outlive.workflow
async def stored(name: str) -> str:
    before = await note(f"{name} before")
    said = await outlive.wait_for_signal("go", str)
    return f"{before} {said}"


@outlive.step
async def make_row(number: int) -> str:
    stage.call(number)
    return f"{number}" * 500


@outlive.workflow
async def stored_rows(count: int) -> int:
    return sum([len(await make_row(number)) for number in range(count)])


# -- Where there is no store -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "no scheme"),
        ("orders.db", "no scheme"),
        (None, "no scheme"),
        (Path("orders.db"), "no scheme"),
        ("mysql://localhost", "'mysql'"),
        ("memory:orders", "a store in memory has no name"),
        ("sqlite:", "names no file"),
        ("sqlite:/", "names no file"),
        ("sqlite::memory:", '"memory:"'),
        ("sqlite://server/orders.db", "'server' stands where a host would"),
    ],
    ids=repr,
)
def test_a_wrong_url_is_refused_in_words(url: Any, message: str) -> None:
    """The error says what is wrong with it and what a good one looks like."""
    with pytest.raises(StoreUrlError) as caught:
        outlive.Engine(url)

    assert message in str(caught.value)
    assert '"sqlite:orders.db"' in str(caught.value)


async def test_a_file_may_be_named_by_its_whole_path(tmp_path: Path) -> None:
    """One slash; with three it is refused, as it means different files to different tools."""
    async with outlive.Engine(f"sqlite:{tmp_path / 'a.db'}") as engine:
        assert 0 == await in_time((await engine.start(stored_rows, 0)).result())
    assert (tmp_path / "a.db").is_file()


async def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    """It is neither opened nor changed."""
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 200)

    with pytest.raises(NotADatabaseError, match="left as it is"):
        await outlive.Engine(f"sqlite:{path}").__aenter__()
    assert "Dear reader, " * 200 == path.read_text()


async def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    """It has tables, and they are not ours."""
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()
    before = path.read_bytes()

    with pytest.raises(NotADatabaseError):
        await outlive.Engine(f"sqlite:{path}").__aenter__()
    assert before == path.read_bytes()


@pytest.mark.parametrize(("name", "message"), [("", "it is a folder"), ("no/such/folder/a.db", "there is no folder")])
async def test_a_place_that_cannot_hold_a_file_is_refused(tmp_path: Path, name: str, message: str) -> None:
    """The error says what to do."""
    with pytest.raises(StoreUnavailableError, match=message):
        await outlive.Engine(f"sqlite:{tmp_path / name}").__aenter__()


# -- When the disk says no ---------------------------------------------------------------------------------------------


async def command(engine: outlive.Engine, pragma: str) -> None:
    """Tell SQLite something on the connection that writes."""
    store = store_of(engine)
    assert isinstance(store, SqliteStore)
    await on_writer(store, lambda connection: connection.execute(pragma).fetchall())


async def until_trouble(engine: outlive.Engine, message: str) -> None:
    """Return when an engine says that its store refuses."""

    async def is_so() -> bool:
        return message in committer_of(engine).trouble

    await until(is_so)


@pytest.mark.parametrize(
    ("no", "yes", "message"),
    [
        ("PRAGMA max_page_count=1", "PRAGMA max_page_count=1000000", "make room on its disk"),
        ("PRAGMA query_only=1", "PRAGMA query_only=0", "needs the right to write"),
    ],
    ids=["full", "read-only"],
)
async def test_a_disk_that_refuses_delays_and_loses_nothing(tmp_path: Path, no: str, yes: str, message: str) -> None:
    """Runs stop where they are, reading goes on, and when there is room they end as if nothing had been."""
    async with Place(tmp_path / "full.db").engine() as engine:
        held = await engine.start(stored, "a")
        await waits(held)
        await command(engine, no)
        run = asyncio.create_task(engine.start(stored_rows, 100, id="run-1"))
        await until_trouble(engine, message)
        assert held.id in [found.id for found in await engine.list()]
        with pytest.raises(StoreUnavailableError, match=message):
            await held.signal("go", "x" * 10_000)
        await command(engine, yes)

        assert sum(500 * len(f"{number}") for number in range(100)) == await in_time((await run).result())
        await held.signal("go", "on")
        assert "a before on" == await in_time(held.result())
    assert ["a before", *range(100)] == stage.calls


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes, where the system allows to make one."""
    path = tmp_path / "disk"
    path.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path)], capture_output=True)
    if made.returncode:
        pytest.skip("only root can make a disk; the test before this one does without")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


async def test_a_disk_that_is_really_full_delays_and_loses_nothing(small_disk: Path) -> None:
    """A run on a file system without a free byte waits, and does every step once when there is room again."""
    async with Place(small_disk / "full.db").engine() as engine:
        ballast = small_disk / "ballast"
        fill(ballast)
        run = asyncio.create_task(engine.start(stored_rows, 100, id="run-1"))
        await until_trouble(engine, "full")
        assert [] == stage.calls
        ballast.unlink()

        await in_time((await run).result())
    assert list(range(100)) == stage.calls


def fill(path: Path) -> None:
    """Leave no byte on a disk."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 1024)


# -- Rows that are not what was written --------------------------------------------------------------------------------


def damage(place: Place, run_id: str, kind: str) -> None:
    """Change the journal of one run behind everybody's back."""
    if place.server_url:
        damage_on_server(place, run_id, kind)
        return
    if place.path is None:
        journal = place.state.runs[run_id].journal
        rows = place.state.trees[journal].rows
        at = 0 if kind == "head" else 1
        seq, format_, crc, body = rows[at]
        changed = body.replace(b"before", b"behind")
        rows[at] = (seq, format_, crc, changed) if kind == "body" else (7, format_, crc, body)
        return
    connection = apsw.Connection(str(place.path))
    other = "CAST(replace(CAST(body AS TEXT), 'before', 'behind') AS BLOB)"
    change = f"body = {other}" if kind == "body" else "seq = 77"
    seq = 0 if kind == "head" else 1
    connection.execute(
        f"UPDATE outlive_events SET {change}"
        f" WHERE seq = {seq} AND journal = (SELECT key FROM outlive_runs WHERE id = ?)",
        (run_id,),
    )
    connection.close()


def damage_on_server(place: Place, run_id: str, kind: str) -> None:
    """The same in PostgreSQL."""
    other = "convert_to(replace(convert_from(body, 'UTF8'), 'before', 'behind'), 'UTF8')"
    change = f"body = {other}" if kind == "body" else "seq = 77"
    with psycopg.connect(place.server_url.partition("?")[0]) as connection:
        seq = 0 if kind == "head" else 1
        statement = (
            f"UPDATE place.events SET {change}"
            f" WHERE seq = {seq} AND journal = (SELECT key FROM place.runs WHERE id = %s)"
        )
        connection.execute(statement, (run_id,))


@pytest.mark.parametrize("kind", ["body", "gap", "head"])
async def test_one_damaged_journal_parks_one_run(place: Place, kind: str) -> None:
    """A changed event, a missing one, or no beginning: it names the event, the others go on, and reading its history
    says the same. [SF-U3 SF-U4]"""
    place.is_damaged = True
    async with place.engine() as first:
        for name in ("good", "bad", "fine"):
            await waits(await first.start(stored, name, id=name))
    damage(place, "bad", kind)

    async with place.engine() as second:
        for name in ("good", "bad", "fine"):
            await second.signal(name, "go", "on")
        assert ["good before on", "fine before on"] == [
            await in_time(second.get(name).result()) for name in ("good", "fine")
        ]
        assert f"journal of run bad is damaged at event {0 if kind == 'head' else 1}" in await parks(second.get("bad"))
        with pytest.raises(CorruptJournalError):
            await journal_of(second, "bad")
    assert 1 == stage.count("bad before")


async def test_one_damaged_row_of_a_run_parks_or_skips_one_run(tmp_path: Path) -> None:
    """A run whose row cannot be read keeps no other run from being claimed."""
    place = Place(tmp_path / "damaged.db", is_damaged=True)
    async with place.engine() as first:
        for name in ("good", "bad", "fine"):
            await waits(await first.start(stored, name, id=name))
    async with place.engine(worker=False) as client:
        for name in ("good", "bad", "fine"):
            await client.signal(name, "go", "on")
    connection = apsw.Connection(str(place.path))
    connection.execute("UPDATE outlive_runs SET waits = 'nonsense', tags = '[' WHERE id = 'bad'")
    connection.close()

    async with place.engine() as second:
        assert "good before on" == await in_time(second.get("good").result())
        assert "fine before on" == await in_time(second.get("fine").result())
