"""Machines in real processes that are really killed, on a file and on a server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from outlive.events import StepSucceeded
from outlive.testing.fsck import check_store
from tests.engine.inside import journal_of
from tests.engine.support import Place

ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(meeting_place: Place) -> Place:
    """Where processes meet."""
    return meeting_place


class World:
    """Processes on one place, and what they did."""

    def __init__(self, folder: Path, place: Place) -> None:
        self._folder = folder
        self._url = place.url

    def begin(self, machine: str, run_id: str, deadly: str = "") -> subprocess.Popen[str]:
        """A process."""
        paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
        environment = os.environ | paths | {"LEDGER": str(self._folder / "ledger"), "DEADLY": deadly}
        command = [sys.executable, "-m", "tests.machine.program", self._url, machine, run_id]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, cwd=self._folder, stdout=pipe, stderr=pipe, text=True)

    def die(self, machine: str, deadly: str) -> None:
        """A process that is killed after this effect."""
        process = self.begin(machine, "run-1", deadly)
        _, output = process.communicate(timeout=40)
        assert -signal.SIGKILL == process.returncode, output

    def end(self, process: subprocess.Popen[str]) -> str:
        """What a process says that comes to its end."""
        said, output = process.communicate(timeout=40)
        assert 0 == process.returncode, output
        return said.strip()

    def live(self, machine: str, deadly: str = "") -> str:
        """The same at once."""
        return self.end(self.begin(machine, "run-1", deadly))

    @property
    def ledger(self) -> list[str]:
        """All effects, in order."""
        return (self._folder / "ledger").read_text().splitlines()


@pytest.fixture
def world(tmp_path: Path, place: Place) -> World:
    """A fresh one."""
    return World(tmp_path, place)


async def check_whole(place: Place) -> None:
    """The store is in order."""
    store = place.store()
    await store.open()
    assert [] == await check_store(store)
    await store.close()


async def test_a_killed_state_runs_again_and_those_before_do_not(world: World, place: Place) -> None:
    """SIGKILL after the effect of WORK, before its row. [CA-X1 CA-X10]"""
    world.die("work", "WORK")

    assert world.live("work") == "DONE"
    assert world.ledger == ["START", "WORK", "WORK", "wrap", "label", "SHIP"]
    await check_whole(place)


async def test_a_killed_split_goes_on_with_the_branch_that_was_not_done(world: World, place: Place) -> None:
    """A finished branch stays finished."""
    world.die("work", "label")

    assert world.live("work") == "DONE"
    assert world.ledger == ["START", "WORK", "wrap", "label", "label", "SHIP"]
    await check_whole(place)


async def test_a_killed_cursor_goes_on_where_the_journal_is(world: World, place: Place) -> None:
    """The first call after the kill is given the highest cursor that is in the journal. [CA-X2]"""
    world.die("walk", "cursor 4")

    assert world.live("walk") == "DONE"
    assert world.ledger == [f"cursor {cursor}" for cursor in (None, 1, 2, 3, 4, 4, 5, 6)]
    await check_whole(place)


async def test_a_killed_roll_back_goes_on(world: World, place: Place) -> None:
    """A roll-back that is killed goes on with the undo that was under way. [CA-X9 CA-X13 FE-R9]"""
    world.die("fail", "undo START")

    assert "no ship" in world.live("fail")
    assert world.live("fail"), "the end is known"
    assert Counter(world.ledger) == Counter(["START", "WORK", "wrap", "label", "undo START", "undo START"])
    await check_whole(place)


async def test_two_processes_on_one_id_share_it(world: World, place: Place) -> None:
    """Both callers get its end, and every effect happened once: an id is not a conflict. [CA-X5 CA-X12]"""
    both = [world.begin("work", "run-1") for _ in range(2)]

    assert [world.end(process) for process in both] == ["DONE", "DONE"]
    assert world.ledger == ["START", "WORK", "wrap", "label", "SHIP"]
    await check_whole(place)


async def test_processes_on_their_own_ids_do_not_meet(world: World, place: Place) -> None:
    """Each machine runs once, wherever. [CA-X11]"""
    all_of_them = [world.begin("work", f"run-{number}") for number in range(3)]

    assert {world.end(process) for process in all_of_them} == {"DONE"}
    assert set(Counter(world.ledger).values()) == {3}
    async with place.engine(worker=False) as engine:
        for number in range(3):
            events = await journal_of(engine, f"run-{number}")
            calls = [event.call for event in events if isinstance(event, StepSucceeded)]
            assert len(calls) == len(set(calls)) == 5
    await check_whole(place)
