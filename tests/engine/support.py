"""What the tests of the engine share: places that outlive engines, a clock that skips, a stage for steps, and crashes.

Steps and workflows are module-level functions, so what they share with the test that runs them is the one `stage`; it
is empty at the start of every test.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import outlive
from outlive._kernel.define.registry import Registry
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive._kernel.store.memory import MemoryState, MemoryStore
from outlive._kernel.store.postgres import PostgresStore
from outlive._kernel.store.sqlite import SqliteStore
from outlive.types import RunHandle, Step, WorkerOptions, Workflow
from tests.engine.inside import give_store, journal_of

T = TypeVar("T")
EventT = TypeVar("EventT", bound=AnyEvent)

PATIENCE_SECONDS = 20
"""How long a test waits for what must happen; only a failing test waits that long."""
LEASE_SECONDS = 10_000_000
"""Longer than any test skips, so that skipping time costs no lease; tests of leases state their own."""
DAY = 24 * 3600


# -- Time --------------------------------------------------------------------------------------------------------------


class SkippingClock(SystemClock):
    """Real time, and now and then a jump forward."""

    def __init__(self) -> None:
        super().__init__()
        self._skipped = 0

    def now(self) -> int:
        """The time, with all jumps."""
        return super().now() + self._skipped

    def skip(self, *, seconds: float) -> None:
        """Jump forward."""
        self._skipped += round(seconds * 1_000_000)


async def in_time(wanted: Awaitable[T]) -> T:
    """The outcome of something that must happen."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await wanted


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Return when a condition holds that no event announces."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


async def turns_of_the_loop(count: int) -> None:
    """Let everything that can go on by itself go on: for what must not happen, which no event announces."""
    for _ in range(count):
        await asyncio.sleep(0)


async def written(file: Path) -> list[int]:
    """The processes that a step says it has, when it has said so."""

    async def is_there() -> bool:
        return file.exists()

    await until(is_there)
    return [int(word) for word in file.read_text().split()]


async def gone(process_ids: list[int]) -> None:
    """Return when none of these processes lives."""

    async def are_gone() -> bool:
        return not any(lives(process_id) for process_id in process_ids)

    await until(are_gone)


def lives(process_id: int) -> bool:
    """Whether a process runs; one that only waits until its parent notices its end does not."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def reaches(run: RunHandle[Any], status: str) -> None:
    """Return when a run has this status."""

    async def has_it() -> bool:
        return await run.status() == status

    await until(has_it)


async def waits(run: RunHandle[Any]) -> None:
    """Return when a run is suspended."""
    await reaches(run, "waiting")


async def parks(run: RunHandle[Any]) -> str:
    """Return when a run is parked, with the reason."""
    await reaches(run, "parked")
    return (await run.info()).reason


async def waits_for_another(run: RunHandle[Any], name: str) -> None:
    """Return when a run waits for a signal after it has set one of that name aside."""

    async def does() -> bool:
        return f"signal {name!r} (1 message was set aside" in await run.why()

    await until(does)


async def events_of(run: RunHandle[Any], kind: type[EventT]) -> list[EventT]:
    """The events of one kind in a run's journal."""
    return [event for event in await journal_of(run) if isinstance(event, kind)]


# -- The stage ---------------------------------------------------------------------------------------------------------


class Gate:
    """Where steps wait until the test lets them pass."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived = asyncio.Semaphore(0)
        self._opened = asyncio.Event()
        self._opened_for_threads = threading.Event()

    async def pass_through(self) -> None:
        """Arrive, and go on when the gate is open."""
        self._arrived.release()
        await self._opened.wait()

    def pass_on_thread(self) -> None:
        """The same, in a sync step."""
        self._loop.call_soon_threadsafe(self._arrived.release)
        assert self._opened_for_threads.wait(PATIENCE_SECONDS), "the test did not open the gate"

    async def reached(self) -> None:
        """Return when one more step has arrived."""
        await in_time(self._arrived.acquire())

    def open(self) -> None:
        """Let everybody pass, from now on."""
        self._opened.set()
        self._opened_for_threads.set()


@dataclass
class Stage:
    """What the steps of a test tell it, and where they wait for it; steps on threads may use it too."""

    loop: asyncio.AbstractEventLoop | None = None
    calls: list[Any] = field(default_factory=list)
    gates: dict[str, Gate] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def call(self, what: Any) -> None:
        """Note that something ran."""
        self.calls.append(what)

    def count(self, what: Any) -> int:
        """How often it ran."""
        return Counter(self.calls)[what]

    def gate(self, name: str = "") -> Gate:
        """The gate of this name."""
        assert self.loop is not None
        if name not in self.gates:
            self.gates[name] = Gate(self.loop)
        return self.gates[name]

    def clear(self) -> None:
        """Begin again, on the running loop; steps that still wait may go on."""
        self.loop = asyncio.get_running_loop()
        for gate in self.gates.values():
            gate.open()
        self.calls, self.gates, self.values = [], {}, {}


stage = Stage()


async def until_calls(*calls: Any) -> None:
    """Return when exactly these calls have been noted; what an engine stops ends a moment later."""

    async def is_so() -> bool:
        return list(calls) == stage.calls

    await until(is_so)


@outlive.step
async def note(what: str) -> str:
    """Say that it ran."""
    stage.call(what)
    return what


@outlive.step
async def hold(name: str) -> str:
    """Run until the test opens the gate of this name."""
    stage.call(name)
    try:
        await stage.gate(name).pass_through()
    except asyncio.CancelledError:
        stage.call(f"{name} cancelled")
        raise
    return name


# -- Places and engines ------------------------------------------------------------------------------------------------


@dataclass
class Place:
    """Where the engines of one test keep their runs; the data outlives the engines."""

    path: Path | None
    """The database file; None for a place in memory or on a server."""
    server_url: str = ""
    """The address on a PostgreSQL server; empty for the others."""
    clock: SkippingClock = field(default_factory=SkippingClock)
    state: MemoryState = field(default_factory=MemoryState)
    is_damaged: bool = False
    """Whether the test breaks the data on purpose."""

    @property
    def url(self) -> str:
        """The settings of an engine."""
        if self.server_url:
            return self.server_url
        return "memory:" if self.path is None else f"sqlite:{self.path}"

    def engine(self, *, wrap: Callable[[Store], Store] = lambda store: store, **options: Any) -> outlive.Engine:
        """An engine on this place; everything that can be quick is. Options of its worker are given by their names."""
        if options.get("worker", True):
            own = {field.name: options.pop(field.name) for field in fields(WorkerOptions) if field.name in options}
            options["worker"] = WorkerOptions(**{"lease_seconds": LEASE_SECONDS, "grace_seconds": 0.05, **own})
        inside = {"_clock": options.pop("clock", self.clock), "_registry": options.pop("registry", None)}
        engine = outlive.Engine(self.url, **{"poll_seconds": 0.01, **inside, **options})
        give_store(engine, wrap(self.store()))
        return engine

    def store(self) -> Store:
        """A store on this place."""
        if self.server_url:
            return PostgresStore(self.server_url, clock=self.clock.now)
        if self.path is None:
            return MemoryStore(clock=self.clock.now, state=self.state)
        return SqliteStore(self.path, clock=self.clock.now)


def registry_of(*definitions: Workflow[..., Any] | Step[..., Any]) -> Any:
    """A registry that has these workflows and steps and no others: other code than this process has."""
    registry = Registry()
    for each in definitions:
        if isinstance(each, Step):
            registry.add_step(each.spec)
        else:
            registry.add_workflow(each.spec)
    return registry
