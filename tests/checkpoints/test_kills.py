"""Programs that keep their own state, in real processes that are really killed, on a file and on a server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

import outlive
from outlive.testing.fsck import check_store
from tests.checkpoints.program import row_of
from tests.engine.support import Place

ROOT = Path(__file__).parents[2]
LAST = 40
KILLS = (0, 1, 4, 2, 7)
"""How many appends of each process are acknowledged before it is killed in the next one."""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where processes meet."""
    server_url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    return Place(None if server_url else tmp_path / "program.db", server_url)


class Program:
    """A process that goes on with the run."""

    def __init__(self, url: str, log: IO[str], *options: str) -> None:
        command = [sys.executable, "-m", "tests.checkpoints.program", url, "run-1", str(LAST), *options]
        paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, env=os.environ | paths, stdin=pipe, stdout=pipe, stderr=log, text=True
        )

    def hear(self) -> str:
        """Its next line."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "it has died; see its log"
        return line

    def let_append(self) -> None:
        """One more."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def let_go(self) -> None:
        """All that is left."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        """`kill -9`, and see that it is gone."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


Begin = Callable[..., Program]


@pytest.fixture
def begin(tmp_path: Path, place: Place) -> Iterator[Begin]:
    """Begins a program; no process is left behind."""
    programs: list[Program] = []
    with (tmp_path / "log").open("a") as log:

        def new(*options: str) -> Program:
            programs.append(Program(place.url, log, *options))
            return programs[-1]

        yield new
        for program in programs:
            program.kill()


async def load(place: Place) -> list[outlive.checkpoints.Checkpoint]:
    """The last checkpoint that a program finds that starts now."""
    async with outlive.checkpoints.open_store(place.url) as store:
        return await store.load_run("run-1")


async def test_a_program_that_is_killed_again_and_again_goes_on_where_it_was(begin: Begin, place: Place) -> None:
    """SIGKILL in the middle of appending: what was acknowledged is there, whole, and nothing is torn. [CA-K7]"""
    acknowledged = -1
    for answer in KILLS:
        program = begin()
        loaded = int(program.hear().removeprefix("loaded "))
        assert loaded in (acknowledged + 1, acknowledged + 2), "one may be there whose answer was lost"
        for number in range(loaded, loaded + answer):
            program.let_append()
            assert program.hear() == str(number)
            acknowledged = number
        program.let_append()
        program.kill()

        rows = await load(place)
        assert rows == [row_of(number) for number in range(len(rows))]
        acknowledged = max(acknowledged, loaded - 1)
        assert len(rows) in (acknowledged + 1, acknowledged + 2)

    last = begin()
    last.let_go()
    while last.hear() != "done":
        """It says the rest."""
    assert await load(place) == [row_of(number) for number in range(LAST + 1)]
    store = place.store()
    await store.open()
    assert [] == await check_store(store)
    await store.close()


async def test_a_second_process_on_one_run_gets_an_error(begin: Begin, place: Place) -> None:
    """Two that both believe that the run is theirs: each number goes to one, and the other stops there. [CA-K3]"""
    programs = [begin("shared"), begin("shared")]
    assert [program.hear() for program in programs] == ["loaded 0", "loaded 0"]
    for program in programs:
        program.let_go()
    said: list[list[str]] = [[program.hear()] for program in programs]
    for program, lines in zip(programs, said, strict=True):
        while not lines[-1].startswith(("taken", "done")):
            lines.append(program.hear())

    (winner,) = [lines for lines in said if lines[-1] == "done"]
    (loser,) = [lines for lines in said if lines is not winner]
    numbers = [int(line) for line in winner[:-1] + loser[:-1]]
    assert sorted(numbers) == list(range(LAST + 1)), "each went to one of them"
    assert loser[-1].removeprefix("taken ") in winner
    assert await load(place) == [row_of(number) for number in range(LAST + 1)]
