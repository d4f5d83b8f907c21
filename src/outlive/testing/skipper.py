"""When time may skip, and how far.

The rule: time moves only while a test waits for it, in `run.result()`, `batch.items()` or `engine.skip()`, and only
when nothing else can happen: no attempt of a step runs, no verb of the store is under way, no commit waits, and nothing
is due. Then it moves to the earliest of: the next timer or retry of a run in memory, the next wake-up of a run in the
store, the deadline of a `result(timeout=...)`. A step that really waits for something (a socket, a thread, a real
sleep) is not skipped over, unless it takes longer than the patience of the test: then it is taken for one that hangs,
and the timers around it go off as they would in production.

Whether everything rests is seen, not guessed: each part says it of itself. Between two of its states there are only
callbacks that are ready to run, so a few turns of the event loop in which everything rests prove that nothing comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from outlive._kernel.model.instant import MICROSECONDS
from outlive.errors import StandstillError
from outlive.testing.skip_clock import SkipClock, next_alarm_at

QUIET_TURNS = 5
"""Turns of the event loop without a move: more than any chain of callbacks between two parts of an engine has."""
SPINS_MAX = 200
"""Turns after which a wait is taken to be for something real, and leaves the processor to others."""
LOOK_SECONDS = 0.001
HANGING_SECONDS_MAX = 60.0
"""Real seconds that a step may run when nothing else is due: it may be slow, and it may never end."""
SKIPS_MAX = 100_000
"""Skips in one wait: a workflow that sets timers for ever must not keep a test for ever."""


class Skipper:
    """Moves the clock for waiting code."""

    def __init__(self, clock: SkipClock, *, patience_seconds: float) -> None:
        self._clock = clock
        self.patience_seconds = patience_seconds
        """How long a step may hold the time, in real seconds."""
        self.still_seconds = patience_seconds
        """How long nothing may move before a wait raises."""
        self._steps: list[tuple[int, int]] = []
        self._steps_since = 0.0
        self._waiting: list[asyncio.Future[None]] = []
        self._seen: dict[asyncio.Future[None], int] = {}
        """The writes that each reader has seen which looks again and again."""
        self._task: asyncio.Task[None] | None = None

    # -- Resting ---------------------------------------------------------------------------------------------

    async def rest(self) -> None:
        """Return when everything that can happen now has happened."""
        while True:
            await self._quiet()
            writes = self.writes()
            for member in self._clock.members:
                member.look()
            await self._quiet()
            wake_at = self.next_at()
            # Everything that a look has set in motion is at rest now, but the look was before that.
            if self.writes() == writes and (wake_at is None or wake_at > self._clock.now()):
                return

    def writes(self) -> int:
        """How often something was written here."""
        return sum(member.writes for member in self._clock.members)

    async def _quiet(self) -> None:
        quiet = turns = 0
        while quiet < QUIET_TURNS:
            turns += 1
            await asyncio.sleep(0 if turns < SPINS_MAX else LOOK_SECONDS)
            quiet = quiet + 1 if self._is_resting() else 0

    def _is_resting(self) -> bool:
        if not all(member.is_resting for member in self._clock.members):
            return False
        steps = [member.attempts for member in self._clock.members]
        now = self._clock.monotonic()
        if steps != self._steps:
            self._steps, self._steps_since = steps, now
        return not any(running for running, _ in steps) or now - self._steps_since >= self.patience_seconds

    def next_at(self) -> int | None:
        """When something is due next, as far as is known here."""
        instants = [next_alarm_at(self._clock), *(member.wake_at for member in self._clock.members)]
        return min((at for at in instants if at is not None), default=None)

    # -- Skipping on request ---------------------------------------------------------------------------------

    async def skip(self, *, seconds: float) -> None:
        """Let this much time pass, with everything that happens in it."""
        target_at = self._clock.now() + round(seconds * MICROSECONDS)
        await self._skip_until(target_at)
        self._clock.skip_to(target_at)
        await self.rest()

    async def finish(self, *, skips_max: int) -> None:
        """Let time pass until nothing is due any more, or that often."""
        for _ in range(skips_max):
            await self.rest()
            at = self.next_at()
            if at is None:
                return
            self._clock.skip_to(at)
        await self.rest()

    async def _skip_until(self, target_at: int) -> None:
        for _ in range(SKIPS_MAX):
            await self.rest()
            at = self.next_at()
            if at is None or at > target_at:
                return
            self._clock.skip_to(at)
        raise StandstillError(f"time was skipped {SKIPS_MAX} times, to {self._clock.today()}, and more is due")

    # -- Skipping for waiting code -------------------------------------------------------------------------

    @contextmanager
    def waiting(self, timeout_seconds: float | None) -> Iterator[asyncio.Future[None]]:
        """Time skips in here; the future is done when the time is over, and fails when nothing can come any more."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        alarm = None
        if timeout_seconds is not None:
            alarm = self._clock.call_later(timeout_seconds, lambda: None if over.done() else over.set_result(None))
        self._waiting.append(over)
        if self._task is None:
            self._task = loop.create_task(self._run(), name="outlive-skipper")
        try:
            yield over
        finally:
            self._waiting.remove(over)
            self._seen.pop(over, None)
            over.cancel()
            if alarm is not None:
                alarm.cancel()
            if not self._waiting:
                self.close()

    def new_pause(self) -> Callable[[], Coroutine[Any, Any, None]]:
        """For one who looks at the store again and again: a pause lasts until something was written since the last.

        A pause raises `StandstillError` when nothing can come any more.
        """
        seen = -1

        async def pause() -> None:
            nonlocal seen
            if self.writes() == seen:
                with self.waiting(None) as over:
                    self._seen[over] = seen
                    while self.writes() == seen and not over.done():
                        await asyncio.wait([over], timeout=LOOK_SECONDS)
                    if self.writes() == seen:
                        over.result()
            seen = self.writes()

        return pause

    def close(self) -> None:
        """Time stands still."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        skips, still_since = 0, None
        while True:
            await self.rest()
            at = self.next_at()
            if any(seen != self.writes() for seen in self._seen.values()):
                await asyncio.sleep(LOOK_SECONDS)  # A member has something to see before time goes on.
            elif at is not None and skips < SKIPS_MAX:
                skips, still_since = skips + 1, None
                self._clock.skip_to(at)
            elif at is not None:
                self._give_up(f"time was skipped {skips} times, to {self._clock.today()}, and it has not ended")
                skips = 0
            else:
                still_since = self._clock.monotonic() if still_since is None else still_since
                is_running = any(running for running, _ in self._steps)
                patience = HANGING_SECONDS_MAX if is_running else self.still_seconds
                if self._clock.monotonic() - still_since >= patience:
                    self._give_up("a step does not end" if is_running else "nothing moves and nothing is due")
                await asyncio.sleep(LOOK_SECONDS)

    def _give_up(self, why: str) -> None:
        for over in self._waiting:
            if not over.done():
                over.set_exception(StandstillError(why))
