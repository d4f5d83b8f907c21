"""Tells observers what has happened, and lets no run wait for them.

For each run and observer there is a line of what is to be told, as long as there is something to tell. A line is worked
off in plain callbacks of the event loop; for a hook that is async it makes a task, and goes on when that has ended. So
the order of one run is kept, and the runs do not wait for each other.

Everything is bounded: how long a line may become (what does not fit is dropped), how long an async hook may take, and
how long a stopping engine waits for all of them. Whatever a hook raises is logged and counted, and that is all.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Iterable
from contextvars import Context
from typing import Any, NamedTuple

from outlive._runtime.clock import Clock
from outlive._runtime.wakeup import Wakeup
from outlive._tasks import own_task
from outlive.telemetry import Counters, log, run_fields

LINE_MAX = 1_000
"""Facts of one run that may wait for one observer."""
HOOKS_PER_TURN_MAX = 100
"""Hooks called in one turn of the event loop."""
LOOK_SECONDS = 0.01
CANCEL_SECONDS = 1.0
"""How long a stopping engine waits for hooks that it has cancelled."""


class Told(NamedTuple):
    """Something to tell: to whom, by which hook."""

    listeners: tuple[Any, ...]
    hook: str
    fact: Any


class ObserverCalls:
    """Tells the observers of one engine."""

    def __init__(self, *, clock: Clock, counters: Counters) -> None:
        self._clock = clock
        self.counters = counters
        self._lines: dict[tuple[str, int], Line] = {}
        self.is_closed = False

    def tell(self, root_id: str, told: Iterable[Told]) -> None:
        """These things are facts now; `root_id` says whose order they are in."""
        for each in told:
            for listener in each.listeners:
                if self.is_closed:
                    self.counters.hooks_dropped += 1
                    continue
                key = root_id, id(listener)
                line = self._lines.get(key)
                if line is None:
                    line = self._lines[key] = Line(self, key, listener)
                line.add(each.hook, each.fact)

    def forget(self, line: Line) -> None:
        """A line is empty."""
        self._lines.pop(line.key, None)

    async def close(self, *, patience_seconds: float) -> None:
        """Tell no more than what is known now, for so long."""
        deadline = self._clock.monotonic() + patience_seconds
        while self._lines and self._clock.monotonic() < deadline:
            await Wakeup().sleep(LOOK_SECONDS)
        tasks = [line.task for line in self._lines.values() if line.task is not None]
        if self._lines:
            log.warning("observers of %d runs have not heard everything when the engine stopped", len(self._lines))
        self.abandon()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_SECONDS)

    def abandon(self) -> None:
        """Tell nothing more."""
        self.is_closed = True
        for line in list(self._lines.values()):
            self.counters.hooks_dropped += line.drop()
        self._lines.clear()


class Line:
    """What one observer is still to hear of one run."""

    __slots__ = ("_behind", "_listener", "_loop", "_observer_calls", "_queue", "key", "task")

    def __init__(self, observer_calls: ObserverCalls, key: tuple[str, int], listener: Any) -> None:
        self.key = key
        self.task: asyncio.Task[None] | None = None
        self._observer_calls = observer_calls
        self._listener = listener
        self._queue: deque[tuple[str, Any]] = deque()
        self._behind = 0
        self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self._go_on)

    def add(self, hook: str, fact: Any) -> None:
        """Tell this too."""
        if len(self._queue) < LINE_MAX:
            self._queue.append((hook, fact))
            return
        self._observer_calls.counters.hooks_dropped += 1
        if not self._behind:
            text = "%s is %d facts behind of run %s; more are dropped"
            log.error(text, self._name, len(self._queue), self.key[0], extra=run_fields(self.key[0], None))
        self._behind += 1

    def drop(self) -> int:
        """Tell nothing more; how much was left."""
        left = len(self._queue) + (self.task is not None)
        self._queue.clear()
        if self.task is not None:
            self.task.cancel()
        return left

    @property
    def _name(self) -> str:
        return f"observer {type(self._listener).__qualname__}"

    def _go_on(self) -> None:
        """Call hooks until one of them takes its time."""
        for _ in range(HOOKS_PER_TURN_MAX):
            if not self._queue:
                self._observer_calls.forget(self)
                return
            hook, fact = self._queue.popleft()
            try:
                heard = Context().run(getattr(self._listener, hook), fact)
            except KeyboardInterrupt:
                raise  # Somebody at the keyboard wants the process to end.
            except BaseException as error:  # The user's code may raise anything; no run is to suffer from it.
                self._failed(hook, error)
                continue
            if inspect.isawaitable(heard):
                self.task = own_task(self._wait(hook, heard), name="outlive-observer")
                return
        self._loop.call_soon(self._go_on)

    async def _wait(self, hook: str, heard: Awaitable[Any]) -> None:
        try:
            async with asyncio.timeout(self._listener.hook_timeout):
                await heard
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # A cancellation too, if the hook let one of its own escape.
            if not (isinstance(error, asyncio.CancelledError) and self._observer_calls.is_closed):
                self._failed(hook, error)
        finally:
            self.task = None
            if not self._observer_calls.is_closed:
                self._loop.call_soon(self._go_on)

    def _failed(self, hook: str, error: BaseException) -> None:
        self._observer_calls.counters.hooks_failed += 1
        extra = run_fields(self.key[0], None)
        log.error("hook %s of %s failed for run %s", hook, self._name, self.key[0], exc_info=error, extra=extra)
