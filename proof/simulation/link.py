"""The store as one process sees it: every verb is a request that travels, may get lost, and is answered or not.

The store itself (`proof.simulation.server`) does each verb at one instant. A request that was sent is done
even if its sender dies meanwhile, and one that was given up may still arrive: a real server does that too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from outlive._kernel.model.pause import PAUSES_CELL, pauses_in
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.errors.store import StoreWentBackError
from proof.simulation.loop import SimulatedLoop
from proof.simulation.server import Server
from proof.simulation.weather import Fate, Trip, Weather
from proof.simulation.world import World

PLACE = "the simulated store"
WRITES = frozenset(
    {
        "append_streams",
        "change_cell",
        "change_schedules",
        "claim_runs",
        "commit",
        "delete_blobs",
        "delete_trees",
        "deliver",
        "give_back",
        "keep_blobs",
        "put_blobs",
        "refuse_messages",
        "register_worker",
        "end_session",
        "watch_ends",
    }
)
READS = frozenset(
    {
        "count_groups",
        "count_runs",
        "find_answers",
        "find_due_schedules",
        "find_inboxes",
        "find_references",
        "find_run",
        "find_runs",
        "find_schedules",
        "get_blobs",
        "list_cells",
        "list_runs",
        "list_schedules",
        "list_streams",
        "list_workers",
        "read_cell",
        "read_inbox",
        "read_items",
        "read_journal",
        "read_journals",
        "read_stream",
    }
)
DOWN_SECONDS = 0.05
"""How long it takes to notice that there is no store."""
CLAIMER = "outlive-claimer"
"""The name of the task in which a worker claims and reads its inboxes."""


class Link:
    """One process's connection to the store. It has every verb of `Store` but the transactions of steps."""

    def __init__(self, world: World, weather: Weather, server: Server, loop: SimulatedLoop) -> None:
        self._world = world
        self._weather = weather
        self._server = server
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        if name in WRITES or name in READS:
            return partial(self._ask, name)
        raise AttributeError(name)

    async def open(self, *, migrate: bool = True) -> None:
        """See `Store`."""

    async def close(self) -> None:
        """See `Store`."""

    @property
    def examiner(self) -> Link:
        """See `Store`. Services of workers ask it for the names of cells, and for nothing else."""
        return self

    def now(self) -> int:
        """See `Store`."""
        return self._world.now()

    def watch(self, ring: Callable[[str], None]) -> None:
        """See `Store`."""
        self._server.watch(self._loop, partial(ring, ""))

    def watch_incarnation(self, changed: Callable[[StoreWentBackError], None]) -> None:
        """See `Store`. It is always the same one."""

    async def ring(self, cell: str) -> None:
        """See `Store`. It is lost: workers look by themselves."""

    def follow(self, ring: Callable[[str], None]) -> bool:
        """See `StreamTable`. It never rings: readers look by themselves."""
        return False

    def open_beat(self, worker_id: str) -> SimulatedBeat:
        """See `Store`."""
        return SimulatedBeat(self._weather, self._server, self._loop, worker_id)

    async def _ask(self, verb: str, *args: Any, **options: Any) -> Any:
        answer: asyncio.Future[Any] = self._loop.create_future()
        trip = self._weather.trip(self._loop.name, verb, is_write=verb in WRITES)
        self._server.sent(self._loop, verb, args)
        self._world.after(self._delayed(trip.there_seconds), self._arrive, trip, verb, args, options, answer)
        value = await answer
        if verb == "read_cell" and args[0] == PAUSES_CELL:
            self._server.heard_pauses(self._loop, pauses_in(value))
        elif verb == "read_inbox" and _is_claimer():
            self._server.heard_message(self._loop, value)
        return value

    def _arrive(
        self, trip: Trip, verb: str, args: tuple[Any, ...], options: dict[str, Any], answer: asyncio.Future[Any]
    ) -> None:
        do = partial(self._server.do, self._loop, verb, args, options)
        value: Any = None
        error: Exception | None = None
        back_seconds = trip.back_seconds
        if self._weather.is_down:
            error, back_seconds = StoreUnavailableError(PLACE, "it is down"), DOWN_SECONDS
        elif trip.fate is Fate.REFUSED:
            self._world.note(self._loop.name, "%s was refused", verb)
            error = StoreUnavailableError(PLACE, "it refused")
        elif trip.fate is Fate.ANSWERED:
            value = do()
        else:
            done: Any = None
            if trip.fate is Fate.UNANSWERED:
                done = do(is_heard=False)
            elif trip.fate is Fate.LATE:
                self._world.after(trip.late_seconds, partial(do, is_late=True, is_heard=False))
            self._world.note(self._loop.name, "%s: %s", verb, trip.fate.value)
            self._server.unanswered(self._loop, verb, args, trip.fate, done)
            error = CommitUnknownError(PLACE, "the line was cut")
        self._world.after(self._delayed(back_seconds), self._hear, answer, value, error)

    def _delayed(self, seconds: float) -> float:
        """What is sent into a clogged line comes out of it when it is free again."""
        return seconds + max(0.0, self._loop.clogged_until - self._world.seconds)

    def _hear(self, answer: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
        if self._loop.is_dead:
            self._loop.kept.append(answer)
        elif answer.done():
            pass  # The task that asked was cancelled meanwhile.
        elif error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(value)


def _is_claimer() -> bool:
    """Whether the worker of this process asks. A client in it that resumes a run reads inboxes too, and the worker does
    not hear of that."""
    task = asyncio.current_task()
    return task is not None and task.get_name() == CLAIMER


class SimulatedBeat:
    """Renews one lease at one instant; how long that takes is the clock's to say."""

    def __init__(self, weather: Weather, server: Server, loop: SimulatedLoop, worker_id: str) -> None:
        self._weather = weather
        self._server = server
        self._loop = loop
        self._worker_id = worker_id

    def renew(self, *, lease_seconds: float) -> bool:
        """See `Beat`."""
        if self._is_cut or self._weather.fate(is_write=False) is Fate.REFUSED:
            raise StoreUnavailableError(PLACE, "it is down")
        return self._server.renew(self._worker_id, lease_seconds=lease_seconds)

    @property
    def _is_cut(self) -> bool:
        return self._weather.is_down or self._loop.is_clogged

    def close(self) -> None:
        """See `Beat`."""
