"""Files that Outlive makes are their owner's alone, and a file that is none of its own is refused."""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import outlive
from outlive._kernel.store.sqlite.connection import LockWait, Role, connect
from outlive.cli import main
from outlive.errors import OutliveError
from outlive.testing import TestEngine
from tests.engine.inside import journal_of


@pytest.fixture(autouse=True)
def _open_umask() -> Iterator[None]:
    """As on a machine where every new file can be read by all."""
    before = os.umask(0)
    yield
    os.umask(before)


@outlive.workflow
async def filed(number: int) -> int:
    """Ends."""
    return number


def modes(folder: Path) -> dict[str, str]:
    """Files and folders that others could open. (Sockets are in folders that they cannot.)"""
    return {
        path.relative_to(folder).as_posix(): f"{stat.S_IMODE(path.stat().st_mode):o}"
        for path in folder.rglob("*")
        if not path.is_socket() and stat.S_IMODE(path.stat().st_mode) & 0o077
    }


async def test_files_of_a_store_and_its_archive_are_their_owners(tmp_path: Path) -> None:
    """Whatever the umask is. [S28]"""
    async with TestEngine(f"sqlite:{tmp_path / 'runs.db'}") as engine:
        await (await engine.start(filed, 1, id="run-1")).result()
        await engine.skip(hours=3)
        await engine.purge(workflow="filed", archive=str(tmp_path / "archive"))
        assert list((tmp_path / "archive").iterdir())
        assert {} == modes(tmp_path)


def test_files_that_commands_write_are_their_owners(tmp_path: Path) -> None:
    """Exports and backups hold everything, also what is redacted elsewhere. [S28]"""
    url = f"sqlite:{tmp_path / 'runs.db'}"
    with outlive.Engine(url).sync as engine:
        engine.start(filed, 1, id="run-1").result()

    def ask(*line: str) -> None:
        result = CliRunner().invoke(main, [*line], env={"OUTLIVE_STORE": url})
        assert result.exit_code == 0, result.output

    ask("runs", "export", "run-1", "-o", str(tmp_path / "one.jsonl"))
    ask("runs", "export", "run-1", "--dir", str(tmp_path / "many"))
    ask("backup", str(tmp_path / "copy.db"))

    assert {} == modes(tmp_path)


def test_an_export_writes_to_no_file_of_others(tmp_path: Path) -> None:
    """Its name is the id of a run, which others know. In a folder that they may write to they put a link there, to a
    file that would be overwritten, or a file of theirs, which they would read. [S28]"""
    url, folder = f"sqlite:{tmp_path / 'runs.db'}", tmp_path / "many"
    folder.mkdir()
    precious = tmp_path / "precious"
    with outlive.Engine(url).sync as engine:
        for name in ("linked", "planted", "run-1"):
            engine.start(filed, 1, id=name).result()

        def plant() -> None:
            precious.write_text("mine")
            for name in ("linked", "planted"):
                (folder / f"{name}.jsonl").unlink(missing_ok=True)
            (folder / "linked.jsonl").symlink_to(precious)
            (folder / "planted.jsonl").touch(0o666)
            (folder / "planted.jsonl").chmod(0o666)

        def look() -> None:
            assert precious.read_text() == "mine"
            assert all((folder / f"{name}.jsonl").read_text().startswith("{") for name in ("linked", "planted"))
            assert modes(folder) == {}

        plant()
        result = CliRunner().invoke(
            main, ["runs", "export", "linked", "planted", "--dir", str(folder)], env={"OUTLIVE_STORE": url}
        )
        assert result.exit_code == 0, result.output
        look()
        plant()
        for name in ("linked", "planted"):
            engine.get(name).export(folder / f"{name}.jsonl")
        look()


def test_an_export_may_go_into_a_pipe(tmp_path: Path) -> None:
    """Or to standard output by its name: what is not a file is written to as it is."""
    url, pipe = f"sqlite:{tmp_path / 'runs.db'}", tmp_path / "pipe"
    os.mkfifo(pipe)
    with outlive.Engine(url).sync as engine:
        engine.start(filed, 1, id="run-1").result()
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        engine.get("run-1").export(pipe)
        assert os.read(reader, 100).startswith(b'{"outlive":"history"')
        os.close(reader)


@pytest.mark.parametrize("seed", range(20))
async def test_a_hostile_file_is_an_error_and_no_crash(tmp_path: Path, seed: int) -> None:
    """A database whose pages were changed by an attacker: refused, or read without harm. [S22]"""
    file = tmp_path / "runs.db"
    async with outlive.Engine(f"sqlite:{file}") as engine:
        await (await engine.start(filed, 1, id="run-1")).result()
    chance, data = random.Random(seed), bytearray(file.read_bytes())
    for _ in range(chance.choice([1, 20, 400])):
        data[chance.randrange(len(data))] = chance.randrange(256)
    file.write_bytes(data[: chance.choice([len(data), len(data) // 2, 100])])

    try:
        async with outlive.Engine(f"sqlite:{file}", worker=False) as engine:
            await engine.list()
            await journal_of(engine, "run-1")
    except OutliveError:
        pass


@pytest.mark.parametrize("role", list(Role), ids=lambda role: role.value)
def test_no_connection_trusts_the_schema_of_a_file(tmp_path: Path, role: Role) -> None:
    """A stranger may have made the views and triggers of the file, and the sizes that its pages name. [S22]"""
    file = tmp_path / "runs.db"
    with outlive.Engine(f"sqlite:{file}", worker=False).sync:
        connection = connect(file, role, LockWait())
        settings = [connection.pragma(name) for name in ("trusted_schema", "cell_size_check")]
        connection.close()

    assert settings == [0, 1]
