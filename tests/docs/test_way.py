"""The drawings of four walks, in the page about the architecture, show files and functions that are on them."""

import re
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

import outlive
from tests.docs.page import DOCS, section_of
from tests.recovery import program
from tests.recovery.test_processes import live

PACKAGE = Path(outlive.__file__).parent
PAGE = DOCS / "internals" / "architecture.md"
FILES_MAX = 23
"""A walk that is longer is drawn in two pieces, or is a sign that the files should be fewer."""
DRAWN = re.compile(r"(?: (\d)|(\d\d))  (\S+\.py) +(.*)")
NAMED = re.compile(r"(\w+(?:\.\w+)?(?:, \w+(?:\.\w+)?)*): ")
WITHOUT_CODE = "_kernel/runtime/tree/draft.py"
"""Holds the change, and has no function that is called."""


class Stop(NamedTuple):
    """A file of a drawing."""

    file: str
    functions: list[str]
    """The names before the colon."""


class Lookout:
    """Notes which functions of which files are called."""

    def __init__(self) -> None:
        self.is_on = False
        self.called: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Called by `sys.setprofile`."""
        if self.is_on and event == "call":
            self.called.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    def files(self) -> dict[str, set[str]]:
        """The functions that were called, by the files of the package."""
        found: dict[str, set[str]] = {}
        for file, function in self.called:
            if file.startswith(f"{PACKAGE}/"):
                found.setdefault(Path(file).relative_to(PACKAGE).as_posix(), set()).add(function)
        return found


look = Lookout()


@outlive.step
async def end_of_the_way(number: int) -> int:
    """The step has begun."""
    look.is_on = False
    return number


@outlive.workflow
async def way_to_a_step(number: int) -> int:
    """A run of one step."""
    return await end_of_the_way(number)


@outlive.step
async def begin_of_the_way_back(number: int) -> int:
    """The step ends."""
    begin()
    return number


@outlive.workflow
async def way_from_a_step(number: int) -> int:
    """A run of one step."""
    return await begin_of_the_way_back(number)


@outlive.workflow
async def way_of_a_signal() -> int:
    """A run that waits for a signal."""
    paid = await outlive.wait_for_signal("paid", int)
    look.is_on = False
    return paid


@outlive.workflow(queue="mill")
async def way_through_a_queue(number: int) -> int:
    """A run of a queue."""
    return number


async def walk_start(tmp_path: Path) -> None:
    """From `engine.start` to the first line of a step."""
    async with outlive.Engine(f"sqlite:{tmp_path}/way.db") as engine:
        begin()
        run = await engine.start(way_to_a_step, 42)
        assert await run.result(timeout=30) == 42


async def walk_back(tmp_path: Path) -> None:
    """From the last line of a step to the result of its run."""
    async with outlive.Engine(f"sqlite:{tmp_path}/way.db") as engine:
        run = await engine.start(way_from_a_step, 42)
        assert await run.result(timeout=30) == 42


async def walk_signal(tmp_path: Path) -> None:
    """From `run.signal` to a suspended run that has it."""
    async with outlive.Engine(f"sqlite:{tmp_path}/way.db") as engine:
        run = await engine.start(way_of_a_signal)
        await run.until("waiting", timeout=30)
        begin()
        await run.signal("paid", 3)
        assert await run.result(timeout=30) == 3


async def walk_crash(tmp_path: Path) -> None:
    """From a process that was killed with -9 in a step to the step that is called again."""
    assert live(tmp_path, "kill in an async step").returncode == -9
    begin()
    async with outlive.Engine(f"sqlite:{tmp_path}/program.db") as engine:
        run = engine.get("run-1")
        await run.signal("go", "sent", key="once")  # The process may have died before it sent this.
        assert await run.result(timeout=30) == ["a 1", "a 2", "a 3", "a 4", "sent"]


async def walk_queue(tmp_path: Path) -> None:
    """From `engine.start` of a workflow with a queue to the claim of the next run, which needs its slot."""
    async with outlive.Engine(f"sqlite:{tmp_path}/way.db") as engine:
        await engine.queues.set("mill", concurrency=1)
        begin()
        runs = [await engine.start(way_through_a_queue, number) for number in range(2)]
        assert [await run.result(timeout=30) for run in runs] == [0, 1]


def begin() -> None:
    """Note what is called from here on."""
    sys.setprofile(look)
    look.is_on = True


@pytest.mark.parametrize(
    ("heading", "walk"),
    [
        ("### From a start to the first line of a step", walk_start),
        ("### Beside the way", walk_start),
        ("### And back", walk_back),
        ("### The signal", walk_signal),
        ("### The crash", walk_crash),
        ("### The queue", walk_queue),
    ],
    ids=["start", "beside", "back", "signal", "crash", "queue"],
)
async def test_every_file_of_the_drawing_is_on_the_walk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heading: str, walk: Callable[[Path], Awaitable[None]]
) -> None:
    """Each walk calls all files and functions of its drawing, and there are not too many of them."""
    monkeypatch.setattr(program, "write", note_step)
    look.called.clear()
    before = sys.getprofile()
    threading.setprofile(look)  # The store makes its threads when it is opened.
    try:
        await walk(tmp_path)
    finally:
        look.is_on = False
        sys.setprofile(before)
        threading.setprofile(None)

    called = look.files()
    drawing = section_of(PAGE, heading)
    beside = re.findall(r"`(\w+/[\w/]+\.py)`", "".join(row for row in drawing.splitlines() if row.startswith("| ")))
    stops = stops_of(drawing) or [Stop(file, []) for file in beside]
    assert stops
    missing = {stop.file for stop in stops} - set(called)
    assert missing == {stop.file for stop in stops if stop.file == WITHOUT_CODE}
    not_called = [f"{it.file}: {name}" for it in stops for name in it.functions if name not in called[it.file]]
    assert not_called == []
    assert len(stops) <= FILES_MAX


def note_step(name: str) -> bool:
    """A step of the program has begun; it is not to die this time."""
    if name.startswith("async"):
        look.is_on = False
    return False


def stops_of(drawing: str) -> list[Stop]:
    """The files of a drawing, which are numbered one after the other."""
    found = [match.groups() for match in map(DRAWN.fullmatch, drawing.splitlines()) if match]
    numbers = [int(one or two) for one, two, _, _ in found]
    assert numbers == [number + numbers[0] for number in range(len(numbers))]
    return [Stop(file, named[1].split(", ") if (named := NAMED.match(text)) else []) for _, _, file, text in found]
