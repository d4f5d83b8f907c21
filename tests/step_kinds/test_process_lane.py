"""The lane of step processes, with processes that a test makes up, some of which cannot begin."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from queue import SimpleQueue
from typing import Any

import pytest

import outlive
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.runtime.steps import processes
from outlive._kernel.runtime.steps.process_child import Ready, Returned, encode
from outlive._kernel.runtime.steps.processes import ProcessLane
from outlive.errors.step import ProcessDiedError
from outlive.telemetry import Counters
from outlive.types import WorkerOptions
from tests.engine.support import in_time, until


class Pipe:
    """One end of a pipe."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.is_closed = False
        self._said: SimpleQueue[bytes] = SimpleQueue()
        if world.talks:
            self._said.put(encode(Ready()))

    def close(self) -> None:
        """Once is enough."""
        self.is_closed = True

    def poll(self, seconds: float = 0) -> bool:
        """Whether it has said something; after a moment, so that its caller does not spin."""
        if self._said.empty():
            threading.Event().wait(min(seconds, 0.002))
        return not self._said.empty()

    def recv_bytes(self) -> bytes:
        """What it has said."""
        return self._said.get()

    def send_bytes(self, job: bytes) -> None:
        """It does the job at once."""
        self._world.jobs.append(job)
        self._said.put(encode(Returned(b"7") if job else Ready()))

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Child:
    """A process that does as the test says."""

    pid = 2**31 - 1
    """No process has this id: a kill of its group finds none, and the process alone is killed."""

    def __init__(self, world: World, options: dict[str, Any]) -> None:
        self._world = world
        self.exitcode = world.exitcode
        self.options = options
        self.is_killed = False

    def start(self) -> None:
        """Take as long as the test wants, or fail."""
        if self._world.fault is not None:
            raise self._world.fault
        self._world.is_starting.set()
        assert self._world.may_start.wait(20)

    def is_alive(self) -> bool:
        """Until it is killed."""
        return not self.is_killed

    def kill(self) -> None:
        """Note it."""
        self.is_killed = True

    def join(self) -> None:
        """It is gone."""


class World:
    """What `multiprocessing` offers as a context."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.exitcode: int | None = 1
        self.talks = False
        """Whether the processes are ready at once, and do what they are given."""
        self.jobs: list[bytes] = []
        self.is_starting = threading.Event()
        self.may_start = threading.Event()
        self.children: list[Child] = []
        self.pipes: list[Pipe] = []

    def Pipe(self) -> tuple[Pipe, Pipe]:  # noqa: N802
        """Two ends."""
        self.pipes += [Pipe(self), Pipe(self)]
        return self.pipes[-2], self.pipes[-1]

    def Process(self, **options: Any) -> Child:  # noqa: N802
        """A process that is not begun."""
        self.children.append(Child(self, options))
        return self.children[-1]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """The processes of one test."""
    world = World()
    monkeypatch.setattr(multiprocessing, "get_context", lambda method: world)
    return world


def new_lane(counters: Counters | None = None) -> ProcessLane:
    """A lane with one place."""
    return ProcessLane(SystemClock(), counters=counters or Counters(), processes_max=1)


async def borrow(lane: ProcessLane) -> None:
    """Want a process for a moment."""
    async with lane.borrow("press"):
        """It is ready."""


async def test_system_without_room_for_a_process_fails_the_attempt_and_not_the_lane(world: World) -> None:
    """The error says what the system said; both ends of the pipe are closed, and the place is free again."""
    counters = Counters()
    lane = new_lane(counters)
    world.fault = BlockingIOError("no more processes")
    for _ in range(2):
        with pytest.raises(ProcessDiedError, match="could not begin: BlockingIOError: no more processes"):
            await in_time(borrow(lane))
    assert 2 == counters.processes_begun
    assert [True] * 4 == [pipe.is_closed for pipe in world.pipes]
    lane.close()


async def test_process_that_is_not_wanted_any_more_is_killed_as_soon_as_it_has_begun(world: World) -> None:
    """The step was cancelled while its process was starting: nothing stays, and the next one has the place."""
    lane = new_lane()
    borrowing = asyncio.ensure_future(borrow(lane))
    await in_time(asyncio.to_thread(world.is_starting.wait, 20))
    borrowing.cancel()
    await in_time(asyncio.wait([borrowing]))
    assert borrowing.cancelled()
    assert not world.children[0].is_killed
    world.may_start.set()

    async def is_killed() -> bool:
        return world.children[0].is_killed and world.pipes[0].is_closed

    await until(is_killed)
    assert world.pipes[1].is_closed
    world.fault = BlockingIOError("no more processes")
    with pytest.raises(ProcessDiedError):
        await in_time(borrow(lane))
    lane.close()


async def test_process_of_a_step_may_have_children_of_its_own(world: World) -> None:
    """A daemon, in the words of `multiprocessing`, may not."""
    lane = new_lane()
    world.may_start.set()
    borrowing = asyncio.ensure_future(borrow(lane))
    await in_time(asyncio.to_thread(world.is_starting.wait, 20))
    assert world.children[0].options["daemon"] is False
    lane.close()
    with pytest.raises(ProcessDiedError, match="ended by itself with exit code 1 before it could begin"):
        await in_time(borrowing)


@pytest.mark.parametrize(
    ("exitcode", "message"),
    [
        (0, "ended by itself with exit code 0"),
        (3, "ended by itself with exit code 3"),
        (-9, r"was killed by SIGKILL \(out of memory, perhaps\)"),
        (-11, "was killed by SIGSEGV"),
        (-250, "was killed by signal 250"),
        (None, "died"),
    ],
)
async def test_error_says_how_the_process_ended(world: World, exitcode: int | None, message: str) -> None:
    """So that a person knows where to look."""
    lane = new_lane()
    world.exitcode = exitcode
    world.may_start.set()
    borrowing = asyncio.ensure_future(borrow(lane))
    await in_time(asyncio.to_thread(world.is_starting.wait, 20))
    lane.close()
    with pytest.raises(ProcessDiedError, match=f"{message} before it could begin"):
        await in_time(borrowing)


async def test_process_that_takes_too_long_to_begin_is_killed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step process that does not begin in time is killed, and its step gets ProcessDiedError."""
    monkeypatch.setattr(processes, "BEGIN_SECONDS_MAX", 0.01)
    lane = new_lane()
    world.may_start.set()
    with pytest.raises(ProcessDiedError, match=r"did not begin within 0\.01 s"):
        await in_time(borrow(lane))
    assert world.children[0].is_killed
    lane.close()


@outlive.step(process=True, retry=None)
def lane_never_begins() -> None: ...


@outlive.step(process=True)
def lane_counts() -> int:
    raise AssertionError("it is done elsewhere")


@outlive.workflow
async def lane_counting() -> int:
    return await lane_counts() + await lane_counts()


async def test_idle_process_is_used_again_and_ends_with_its_engine(world: World) -> None:
    """It is asked whether it is still there before it is given the second job."""
    world.talks = True
    world.may_start.set()
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        assert 14 == await in_time((await engine.start(lane_counting)).result())
        (child,) = world.children
        assert not child.is_killed
        assert [True, False, True] == [bool(job) for job in world.jobs]
        assert 1 == engine.counters.processes_begun
    assert child.is_killed


@outlive.workflow
async def lane_without_room() -> str:
    try:
        await lane_never_begins()
    except ProcessDiedError as error:
        return str(error)
    return "begun"


async def test_workflow_learns_that_a_process_could_not_begin(world: World) -> None:
    """A process that could not begin raises in the workflow like any failure of its step."""
    world.fault = BlockingIOError("no more processes")
    async with outlive.Engine("memory:", worker=WorkerOptions(tune=False)) as engine:
        result = await in_time((await engine.start(lane_without_room)).result())
    assert "could not begin: BlockingIOError: no more processes" in result
