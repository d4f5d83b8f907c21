"""Threads for sync steps.

Not `concurrent.futures`: its threads are joined when the interpreter ends, so one stuck step would keep the process
from stopping. These are daemons, made when needed, reused, and left behind when they hang.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from outlive._kernel.runtime.clock import Clock

OnLate = Callable[[Any, BaseException | None], None]
"""Called on the event loop with what a call returned or raised after it was cancelled."""
ThreadJob = tuple[
    Callable[[], Any], contextvars.Context, asyncio.AbstractEventLoop, "asyncio.Future[Any]", OnLate | None
]


class ThreadLane:
    """Runs functions on up to `threads_max` daemon threads."""

    def __init__(self, clock: Clock, *, threads_max: int) -> None:
        self._clock = clock
        self._threads_max = threads_max
        self._threads = 0
        self._busy = 0
        self._queue: SimpleQueue[ThreadJob | None] = SimpleQueue()

    @property
    def busy(self) -> int:
        """Calls that run or wait for a thread."""
        return self._busy

    async def run(self, fn: Callable[[], Any], late: OnLate | None = None) -> Any:
        """Call `fn` on a thread, in a copy of this context. A cancelled call runs on, and its result goes to `late`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._busy += 1
        if self._busy > self._threads and self._threads < self._threads_max:
            self._threads += 1
            self._clock.spawn(self._work, name=f"outlive-step-{self._threads}")
        self._queue.put((fn, contextvars.copy_context(), loop, future, late))
        return await future

    def close(self) -> None:
        """Let the idle threads end; busy ones end after their call."""
        for _ in range(self._threads):
            self._queue.put(None)
        self._threads = 0

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            fn, context, loop, future, late = job
            try:
                if future.done():  # A call that was cancelled while it waited for a thread is not made.
                    late = None
                    result, error = None, None
                else:
                    result, error = context.run(fn), None
            except BaseException as raised:  # Whatever a step raises is its outcome; the thread lives on.
                result, error = None, raised
            try:
                loop.call_soon_threadsafe(self._answer, future, late, result, error)
            except RuntimeError:  # The loop has been closed: no attempt waits for an answer.
                return
            del job, fn, context, future, late, result, error

    def _answer(
        self, future: asyncio.Future[Any], late: OnLate | None, result: Any, error: BaseException | None
    ) -> None:
        self._busy -= 1
        if future.done():
            if late is not None:
                late(result, error)
            return
        if error is None:
            future.set_result(result)
        elif isinstance(error, StopIteration):
            # A future cannot carry it, and a coroutine would turn it into something else.
            future.set_exception(RuntimeError(f"a step raised StopIteration({error.value!r})"))
        else:
            future.set_exception(error)
