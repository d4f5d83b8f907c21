"""Programs that keep their own state, in real processes that are really killed, on a file and on a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import outlive
from outlive.testing.fsck import check_store
from outlive.testing.kill.process import ChildProcess
from tests.checkpoints.program import row_of
from tests.engine.support import Place

ROOT = Path(__file__).parents[2]
LAST = 40
KILLS = (1, 2, 5, 3, 8)
"""How many checkpoints each process is told of before it is killed."""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where processes meet."""
    server_url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""
    return Place(None if server_url else tmp_path / "program.db", server_url)


class World:
    """Processes on one place."""

    def __init__(self, folder: Path, place: Place) -> None:
        self._folder, self._url = folder, place.url
        self._children: list[ChildProcess] = []

    def begin(self, run_id: str = "run-1") -> ChildProcess:
        """A process that goes on with a run."""
        paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
        program = "tests.checkpoints.program"
        child = ChildProcess(program, self._url, run_id, str(LAST), log=self._folder / "log", env=paths)
        self._children.append(child)
        return child

    def end(self) -> None:
        """Leave nobody behind."""
        for child in self._children:
            if child.killed_at is None:
                child.kill()


@pytest.fixture
def world(tmp_path: Path, place: Place) -> Iterator[World]:
    """A fresh one."""
    world = World(tmp_path, place)
    yield world
    world.end()


def hear(child: ChildProcess) -> str:
    """Its next line."""
    line = child.read_line().decode().strip()
    assert line, child.last_words()
    return line


async def test_a_program_that_is_killed_again_and_again_goes_on_where_it_was(world: World, place: Place) -> None:
    """SIGKILL in the middle of appending: what was acknowledged is there, whole, and nothing is torn. [CA-K7]"""
    acknowledged = -1
    for told in KILLS:
        child = world.begin()
        loaded = int(hear(child).removeprefix("loaded "))
        assert loaded in (acknowledged + 1, acknowledged + 2), "one may be there whose answer was never heard"
        for _ in range(told):
            acknowledged = int(hear(child))
        child.kill()

        async with outlive.checkpoints(place.url) as store:
            rows = await store.load_run("run-1")
        assert rows == [row_of(number) for number in range(len(rows))]
        assert len(rows) in (acknowledged + 1, acknowledged + 2)

    last = world.begin()
    while (line := hear(last)) != "done":
        assert not line.startswith("taken")
    async with outlive.checkpoints(place.url) as store:
        assert await store.load_run("run-1") == [row_of(number) for number in range(LAST + 1)]
    plain = place.store()
    await plain.open()
    assert [] == await check_store(plain)
    await plain.close()


async def test_a_second_process_on_one_run_is_told(world: World, place: Place) -> None:
    """Two that both believe that the run is theirs: each number goes to one, and the other stops there. [CA-K3]"""
    first, second = world.begin(), world.begin()
    said = {first: [hear(first)], second: [hear(second)]}
    for child, lines in said.items():
        while not lines[-1].startswith(("taken", "done")):
            lines.append(hear(child))

    ends = [lines[-1] for lines in said.values()]
    numbers = [int(line) for lines in said.values() for line in lines[1:-1]]
    assert "done" in ends
    assert sorted(numbers) == sorted(set(numbers)), "a number that two were given"
    async with outlive.checkpoints(place.url) as store:
        assert await store.load_run("run-1") == [row_of(number) for number in range(LAST + 1)]
