"""A simulated process: the real engine, with its worker, committer, claimer and keeper, on a loop and clock of its own.

It can be killed between any two callbacks, stand still for longer than its lease and go on as if nothing had happened,
stop cleanly, and come back as a new process. The code in it is the code of production; only its loop, its clock and its
line to the store are simulated.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from outlive._kernel.define.registry import Registry
from outlive._kernel.lease.contract import Leases
from outlive._kernel.model import Limits
from outlive._kernel.model.retention import Keep
from outlive._kernel.runtime.environment import Environment, ReplayPace
from outlive._kernel.runtime.session.sessions import WorkerSessions
from outlive.engine import Engine
from outlive.errors import StoreUnavailableError
from outlive.types import WorkerOptions
from proof.simulation.clock import SimulatedClock
from proof.simulation.leases import SimulatedLeases
from proof.simulation.ledger import Ledger
from proof.simulation.link import Link
from proof.simulation.loop import SimulatedLoop
from proof.simulation.server import Server
from proof.simulation.weather import Weather
from proof.simulation.world import World

BOOT_RETRY_SECONDS = 0.5
PAUSE_SECONDS = 0.1
"""Between two slices of a replay, while others commit."""
CLIENT_POLL_SECONDS = 2.0


@dataclass(slots=True)
class Parts:
    """What every process is made of."""

    world: World
    weather: Weather
    server: Server
    ledger: Ledger
    lease_seconds: float
    poll_seconds: float
    limits: Limits
    replayed_rows: int
    """How many events of a journal are read at once, and then each is a slice; 0 for replays in one go."""
    overlaps: bool
    """Whether committers work on answers while the next batch is written, as they do with a server."""
    sees_dead: bool
    """Whether workers see that a neighbour has died, as those of one machine do."""
    false_alarms: float
    """How likely a look at the neighbours takes a living one for dead."""
    retention: Sequence[Keep]
    """What every worker deletes, and when."""
    has_schedules: bool
    """Whether workers look for schedules. Where there are none, looks would only give old plans another course."""
    is_named: bool
    """Whether a worker that comes back is known by its name."""


NewLeases = Callable[[Any], SimulatedLeases]
"""How an engine gets its leases, given its store."""


class SimulatedEngine(Engine):
    """An engine on a line to the simulated store."""

    def __init__(
        self,
        link: Link,
        clock: SimulatedClock,
        *,
        process_name: str,
        overlaps: bool,
        replayed_rows: int,
        leases: NewLeases,
        **options: Any,
    ) -> None:
        super().__init__("memory:", _clock=clock, **options)
        self._store: Any = link
        self._overlaps = overlaps
        self._replayed_rows = replayed_rows
        self._simulated_leases = leases
        self._process_name = process_name

    @property
    def _worker_name(self) -> str:
        """Not that of the real process, which differs from one play of a seed to the next."""
        return self._worker.name or self._process_name

    def _new_sessions(self, leases: Leases) -> WorkerSessions:
        assert self._parts.committer is not None
        self._parts.committer._overlaps = self._overlaps
        # The given ones would look at the real process, which all simulated ones share.
        return super()._new_sessions(self._simulated_leases(self._store))

    def _environment(self) -> Environment:
        pace = ReplayPace(slice_seconds=math.inf)
        if self._replayed_rows:
            pace = ReplayPace(0.0, PAUSE_SECONDS, rows_max=self._replayed_rows, blobs_max=1)
        return super()._environment()._replace(replay_pace=pace)

    @property
    def is_replaying(self) -> bool:
        """Whether a replay is under way between two slices."""
        worker = self._parts.sessions._worker if self._parts.sessions is not None else None
        return worker is not None and not worker.replays.is_resting

    def forget(self) -> None:
        """Drop the runs that it has in memory: a workflow that is garbage must not be heard."""
        station = self._parts.sessions
        if station is not None and station._worker is not None:
            with suppress(Exception):
                station._worker.discard_all()


class Process:
    """One life of one worker, or of a client."""

    def __init__(self, parts: Parts, name: str, registry: Registry, *, has_worker: bool = True) -> None:
        self._parts = parts
        self.name = name
        self.has_worker = has_worker
        self.loop = SimulatedLoop(parts.world, name)  # type: ignore[abstract]  # It has what asyncio calls.
        self.loop.ledger = parts.ledger
        self.clock = SimulatedClock(parts.world, self.loop)
        self._registry = registry
        self.engine: SimulatedEngine | None = None
        """None while it is not up."""
        self.is_stopping = False
        self._kept: list[SimulatedEngine] = []

    @property
    def is_alive(self) -> bool:
        """Whether it was not killed and has not ended."""
        return not self.loop.is_dead

    @property
    def is_up(self) -> bool:
        """Whether it can be asked for something."""
        return self.is_alive and not self.is_stopping and self.engine is not None

    def boot(self) -> None:
        """Begin to live."""
        self.loop.call_soon(lambda: self.loop.kept.append(self.loop.create_task(self._boot(), name="boot")))

    def _worker_options(self) -> WorkerOptions:
        return WorkerOptions(
            name=self.name.partition(".")[0] if self._parts.is_named else None,
            lease_seconds=self._parts.lease_seconds,
            grace_seconds=1.0,
            schedules=self._parts.has_schedules,
            flows=False,
            tune=False,
        )

    async def _boot(self) -> None:
        while True:
            link = Link(self._parts.world, self._parts.weather, self._parts.server, self.loop)
            engine = SimulatedEngine(
                link,
                self.clock,
                process_name=self.name,
                _registry=self._registry,
                worker=self.has_worker and self._worker_options(),
                poll_seconds=self._parts.poll_seconds if self.has_worker else CLIENT_POLL_SECONDS,
                limits=self._parts.limits,
                overlaps=self._parts.overlaps,
                replayed_rows=self._parts.replayed_rows,
                retention=self._parts.retention if self.has_worker else (),
                leases=self._new_leases,
            )
            self._kept.append(engine)
            try:
                await engine.__aenter__()
            except StoreUnavailableError:
                await asyncio.sleep(BOOT_RETRY_SECONDS)
            except Exception as error:
                if self.loop.is_dead:
                    return  # It is buried while it begins.
                self._parts.world.complain(f"{self.name} could not begin: {error!r}")
                return
            else:
                self.engine = engine
                return

    def _new_leases(self, store: Any) -> SimulatedLeases:
        world, weather = self._parts.world, self._parts.weather
        return SimulatedLeases(
            store,
            chance=world.new_random(f"eyes of {self.name}"),
            is_dead=self._parts.server.is_dead,
            sees_dead=self._parts.sees_dead,
            false_alarms=self._parts.false_alarms if not weather.is_healed else 0.0,
            happened=self._parts.server.happened,
        )

    def kill(self, reason: str) -> None:
        """Die, here and now."""
        if self.is_alive:
            self._parts.world.note(self.name, "killed: %s", reason)
            self._parts.world.sometimes["process killed"] += 1
            if self._parts.ledger.is_busy(self.loop):
                self._parts.world.sometimes["process killed in the middle of a step"] += 1
            if self.engine is not None and self.engine.is_replaying:
                self._parts.world.sometimes["process killed in the middle of a replay"] += 1
            self.loop.die()

    def pause(self) -> None:
        """Stand still."""
        self._parts.world.note(self.name, "stands still")
        self.loop.is_paused = True

    def go_on(self) -> None:
        """Go on, without knowing that time has passed."""
        if self.loop.is_paused:
            self.loop.is_paused = False
            self._parts.world.note(self.name, "goes on")
            self._parts.server.forget_pauses(self.loop)
            self._parts.world.resumed(self.loop)

    def stop(self, done: Callable[[], None]) -> None:
        """End as a process does that is asked to."""
        if not self.is_up:
            return
        self.is_stopping = True
        self._parts.world.note(self.name, "is asked to stop")

        async def leave() -> None:
            assert self.engine is not None
            if self.engine.is_replaying:
                self._parts.world.sometimes["process stopped in the middle of a replay"] += 1
            try:
                await self.engine.__aexit__(None, None, None)
            except Exception as error:
                self._parts.world.complain(f"{self.name} could not stop: {error!r}")
            self._parts.world.note(self.name, "has stopped")
            self._parts.world.sometimes["process stopped cleanly"] += 1
            self.loop.die()
            done()

        self.loop.call_soon(lambda: self.loop.kept.append(self.loop.create_task(leave(), name="leave")))

    def bury(self) -> None:
        """Let go of all that it had in its hands. Nothing of it is heard any more."""
        self.loop.die()
        asyncio._set_running_loop(self.loop)
        try:
            for engine in self._kept:
                engine.forget()
            # Letting go of runs makes tasks, too.
            for task in {**dict.fromkeys(self.loop.kept), **dict.fromkeys(asyncio.all_tasks(self.loop))}:
                if isinstance(task, asyncio.Task) and not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    with suppress(BaseException):
                        task.get_coro().close()
        finally:
            asyncio._set_running_loop(None)
