"""`TestEngine`: an engine whose time skips.

It is the production engine, worker and client, on a clock that stands still (`outlive.testing.skip_clock`) and is moved
when everything rests and a test waits (`outlive.testing.skipper`). Nothing else differs: every commit, replay, retry
and timer takes the way it takes in production. Its lease has no end, so no skip can cost it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from outlive._kernel.client.client import Client
from outlive._kernel.client.followers import Bell
from outlive._kernel.client.streams import LookRest
from outlive._kernel.model import given
from outlive._kernel.model.given import Span
from outlive._kernel.model.worker import WorkerOptions
from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.store.contract import Store
from outlive.engine import Engine
from outlive.errors import StandstillError
from outlive.testing.fake_steps import FakeSteps
from outlive.testing.skip_clock import SkipClock
from outlive.testing.skipper import Skipper
from outlive.testing.watched_store import WatchedStore

LEASE_SECONDS = 3e11
"""Beyond the last instant that a timer can name."""
POLL_SECONDS = 0.02
GRACE_SECONDS = 0.1
PATIENCE_SECONDS = 2.0


class SkippingClient(Client):
    """A client whose waits make time skip."""

    skipper: Skipper

    async def wait(self, end: asyncio.Future[Any], timeout: float | None) -> None:
        """Wait in skipped time."""
        with self.skipper.waiting(timeout) as over:
            either: list[asyncio.Future[Any]] = [end, over]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not end.done():
                over.result()

    def new_pause(self) -> Callable[[], Coroutine[Any, Any, None]]:
        """A pause that makes time skip."""
        return self.skipper.new_pause()

    def new_rest(self) -> LookRest:
        """A pause of a reader of a stream that makes time skip."""
        pause = self.skipper.new_pause()

        async def rest(bell: Bell, seconds: float) -> None:
            await pause()

        return rest

    async def _settle(self) -> None:
        await self.skipper.rest()

    async def result(self, run_id: str, timeout: Span | None = None) -> Any:
        """Wait for the end of a run, while time skips.

        Raises:
            StandstillError: nothing moves any more, and it has not ended.
        """
        try:
            return await super().result(run_id, timeout)
        except StandstillError as error:
            raise StandstillError(f"run {run_id} does not end ({await self.why(run_id)}): {error.what}") from None


def _for_tests(worker: WorkerOptions, *, schedules: bool) -> WorkerOptions:
    """How a worker works in tests, where nothing else was said."""
    usual = WorkerOptions()
    has_grace = worker.grace_seconds != usual.grace_seconds
    found = replace(
        worker, schedules=schedules, tune=False, grace_seconds=worker.grace_seconds if has_grace else GRACE_SECONDS
    )
    if worker.lease_seconds == usual.lease_seconds:
        given.keep(found, lease_seconds=LEASE_SECONDS)  # Longer than an engine takes.
    return found


class TestEngine(Engine):
    """An engine for tests: in memory, and time skips when nothing is running.

        async with TestEngine() as engine:
            run = await engine.start(refund, "o-1")
            assert await run.result() == "expired"  # two days in milliseconds

    Args:
        url: the store, as `Engine` takes it. One in memory is new and empty; another one is used as it is.
        worker: as `Engine` takes it. It lets steps finish for a moment only, and its lease has no end, unless the
            options say otherwise.
        clock: the clock of another test engine on the same store.
        patience_seconds: in real seconds, how long a step that runs holds the time, and how long a `result()` waits
            when nothing moves and nothing is due before it raises `StandstillError` with what the run waits for.
        schedules: whether schedules fire while time skips; they do not unless this is True.
        steps: functions to call in the place of steps, `{charge: fake_charge}`, with what the workflow gave to them.
        options: as `Engine` takes them.
    """

    _client_class = SkippingClient

    __test__ = False  # It is not a test, whatever pytest thinks of its name.

    def __init__(
        self,
        url: str = "memory:",
        *,
        worker: bool | WorkerOptions = True,
        poll_seconds: float = POLL_SECONDS,
        clock: SkipClock | None = None,
        patience_seconds: float = PATIENCE_SECONDS,
        schedules: bool = False,
        steps: Mapping[Any, Callable[..., Any]] | None = None,
        **options: Any,
    ) -> None:
        if clock is None:
            clock = SkipClock() if url.startswith("memory:") else _clock_for_old_store()
        if steps:  # Innermost: the test's own middleware is around a fake as it is around a step.
            fakes = FakeSteps(steps)
            options["middleware"] = [*options.get("middleware", ()), fakes]
            options["_registry"] = fakes.added_to(options.get("_registry"))
        super().__init__(url, worker=worker, poll_seconds=poll_seconds, _clock=clock, **options)
        self._worker = _for_tests(self._worker, schedules=schedules)
        self.clock = clock
        self._skipper = Skipper(clock, patience_seconds=patience_seconds)
        self._watched = WatchedStore(self._store)
        self._store: Store = self._watched

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.clock.members.append(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        await super().__aexit__(kind, error, trace)

    def _leave(self) -> None:
        self._skipper.close()
        if self in self.clock.members:
            self.clock.members.remove(self)

    def _new_client(self) -> Client:
        client = super()._new_client()
        assert isinstance(client, SkippingClient)
        client.skipper = self._skipper
        return client

    # -- Time ------------------------------------------------------------------------------------------------

    def now(self) -> datetime:
        """The time of this engine, in UTC."""
        return self.clock.today()

    async def skip(
        self,
        delta: timedelta = timedelta(),
        *,
        days: float = 0,
        hours: float = 0,
        minutes: float = 0,
        seconds: float = 0,
    ) -> None:
        """Let time pass, with all that happens in it, and settle."""
        whole = delta + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        await self._skipper.skip(seconds=whole.total_seconds())

    async def settle(self) -> None:
        """Return when everything that can happen without time passing has happened."""
        await self._skipper.rest()

    async def finish(self, *, skips_max: int) -> None:
        """Let time pass until nothing is due any more, or so often."""
        await self._skipper.finish(skips_max=skips_max)

    # -- What the clock asks (`outlive.testing.skip_clock.Member`) -------------------------------------------

    @property
    def is_resting(self) -> bool:
        """Whether nothing moves here by itself, apart from steps that run."""
        parts = self._parts
        return (
            not self._watched.under_way
            and (parts.committer is None or parts.committer.is_idle)
            and (parts.sessions is None or parts.sessions.is_resting)
            and (parts.services is None or parts.services.is_resting)
        )

    @property
    def attempts(self) -> tuple[int, int]:
        """How many steps run, and how many were begun so far."""
        sessions = self._parts.sessions
        return (0 if sessions is None else sessions.steps_running), self.counters.steps_started

    @property
    def writes(self) -> int:
        """How often something was written."""
        return self._watched.writes

    @property
    def wake_at(self) -> int | None:
        """When the store has something due next."""
        return min((at for at in (self._watched.wake_at, self._watched.schedule_at) if at is not None), default=None)

    def look(self) -> None:
        """See what is due now."""
        self._watched.wake_at = self._watched.schedule_at = None
        if self._parts.sessions is not None:
            self._parts.sessions.ring()
        if self._parts.services is not None:
            self._parts.services.ring()

    # -- Death -----------------------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Die as a killed process does: nothing is released, nothing more is written, and no waiter hears of it."""
        self._leave()
        self._parts.abandon()
        self._resources.abandon()


def _clock_for_old_store() -> SkipClock:
    """A store that is there already has seen real time, and the ids of others."""
    real = SystemClock()
    return SkipClock(start_at=real.now(), seed=random.SystemRandom().getrandbits(63))
