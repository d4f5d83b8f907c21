"""Calls the hooks of observers; no run waits for them.

Each tree and observer have a queue of hooks to call, for as long as there are any. It is worked off in plain callbacks
of the event loop; an async hook becomes a task, and the queue goes on when that has ended. So the order within a tree
is kept, and trees do not wait for each other.

Everything is bounded: the length of a queue (what does not fit is discarded), the time of an async hook, and how long a
stopping engine waits for all of them. What a hook raises is logged and counted, and has no other effect.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Iterable
from contextvars import Context
from typing import Any, NamedTuple

from outlive._interrupts import came_by_signal
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._tasks import own_task
from outlive.telemetry import Counters, log, run_fields

QUEUE_MAX = 1_000
"""Facts of one tree that may wait for one observer."""
HOOKS_PER_TURN_MAX = 100
"""Hooks called in one turn of the event loop."""
LOOK_SECONDS = 0.01
CANCEL_SECONDS = 1.0
"""How long a stopping engine waits for hooks that it has cancelled."""


class HookCall(NamedTuple):
    """A fact, the hook that it is for, and the observers that have this hook."""

    listeners: tuple[Any, ...]
    hook: str
    fact: Any


class ObserverCalls:
    """Calls the hooks of all observers of one engine."""

    def __init__(self, *, clock: Clock, counters: Counters) -> None:
        self._clock = clock
        self.counters = counters
        self._queues: dict[tuple[str, int], HookQueue] = {}
        self.is_closed = False

    def add(self, root_id: str, calls: Iterable[HookCall]) -> None:
        """Call these hooks, those of one tree (`root_id`) in order."""
        for call in calls:
            for listener in call.listeners:
                if self.is_closed:
                    self.counters.hooks_dropped += 1
                    continue
                key = root_id, id(listener)
                queue = self._queues.get(key)
                if queue is None:
                    queue = self._queues[key] = HookQueue(self, key, listener)
                queue.add(call.hook, call.fact)

    def forget(self, queue: HookQueue) -> None:
        """A queue is empty."""
        self._queues.pop(queue.key, None)

    async def close(self, *, timeout_seconds: float) -> None:
        """Wait for the hooks that are queued, up to the timeout, and call no more."""
        deadline = self._clock.monotonic() + timeout_seconds
        while self._queues and self._clock.monotonic() < deadline:
            await Wakeup().sleep(LOOK_SECONDS)
        tasks = [queue.task for queue in self._queues.values() if queue.task is not None]
        if self._queues:
            log.warning("the engine stopped before all hooks of observers of %d runs were called", len(self._queues))
        self.abandon()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_SECONDS)

    def abandon(self) -> None:
        """Call no more hooks, at once."""
        self.is_closed = True
        for queue in list(self._queues.values()):
            self.counters.hooks_dropped += queue.discard()
        self._queues.clear()


class HookQueue:
    """The hooks of one observer that are still to be called for one tree."""

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
        """Call this hook too, unless too many wait."""
        if len(self._queue) < QUEUE_MAX:
            self._queue.append((hook, fact))
            return
        self._observer_calls.counters.hooks_dropped += 1
        if not self._behind:
            text = "%s is %d facts behind for run %s; more are discarded"
            log.error(text, self._name, len(self._queue), self.key[0], extra=run_fields(self.key[0], None))
        self._behind += 1

    def discard(self) -> int:
        """Call no more hooks; how many were left."""
        left = len(self._queue) + (self.task is not None)
        self._queue.clear()
        if self.task is not None:
            self.task.cancel()
        return left

    @property
    def _name(self) -> str:
        return f"observer {type(self._listener).__qualname__}"

    def _go_on(self) -> None:
        """Call hooks until one of them is async."""
        for _ in range(HOOKS_PER_TURN_MAX):
            if not self._queue:
                self._observer_calls.forget(self)
                return
            hook, fact = self._queue.popleft()
            try:
                result = Context().run(getattr(self._listener, hook), fact)
            except BaseException as error:  # The user's code may raise anything; no run fails for it.
                if came_by_signal(error):
                    raise  # Ctrl-C ends the process.
                self._failed(hook, error)
                continue
            if inspect.isawaitable(result):
                self.task = own_task(self._wait(hook, result), name="outlive-observer")
                return
        self._loop.call_soon(self._go_on)

    async def _wait(self, hook: str, result: Awaitable[Any]) -> None:
        try:
            async with asyncio.timeout(self._listener.hook_timeout):
                await result
        except BaseException as error:  # A cancellation too, if the hook let one of its own escape.
            if came_by_signal(error):
                raise
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
