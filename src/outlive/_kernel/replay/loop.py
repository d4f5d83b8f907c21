"""A small deterministic event loop for one tree of runs.

It has call_soon, futures, tasks and call_later/call_at, and nothing else. Everything in asyncio that people use in a
workflow (`gather`, `TaskGroup`, `wait`, `wait_for`, `timeout`, `sleep`, `as_completed`, `Event`, `Lock`, `Semaphore`,
`Queue`) reduces to these, and here a future that does not come from the workflow itself is resolved only by a journal
event. So all of it is durable, and all of it replays exactly: the ready queue is first in first out, the clock is the
time of the last event, and nothing else can move.

What needs the outside world (sockets, threads, subprocesses, signals) raises `NotDurableError`, which says what to do.

The loop never runs by itself. `drain` runs until nothing is ready, on the thread of the worker: for that moment this
loop is the running loop of the thread, its hooks for async generators are those of the thread, and no task of the
worker is the current one. From Python 3.14 on a thread has one current task and not one for each loop, and asyncio
refuses to enter a task while there is one.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import types
from asyncio import tasks as asyncio_tasks
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, NamedTuple, NoReturn, cast

from outlive._interrupts import came_by_signal
from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.replay import direct_wait
from outlive._kernel.replay.closing import close_quietly
from outlive._kernel.replay.direct_wait import DirectWait
from outlive._kernel.replay.frame import SCOPE
from outlive._kernel.replay.timers import Timer, Timers
from outlive.errors.program import NotDurableError, RunawayError
from outlive.telemetry import log

FOREVER_AT = 253_402_300_799_000_000
"""The last second that a datetime can say; `asyncio.sleep(math.inf)` is a timer too."""
TIMER = "@timer"
REFUSALS_MAX = 1_000
"""Durable calls that a dropped run may try before it is left hanging in one: some code swallows every exception."""


class Callback(asyncio.Handle):
    """A callback that is ready, in place of asyncio's own handle: smaller, and made 2x faster."""

    __slots__ = ("args", "call", "context", "is_cancelled")

    call: Callable[..., Any] | None
    args: tuple[Any, ...]
    context: contextvars.Context
    is_cancelled: bool

    def cancel(self) -> None:
        """Do not call it."""
        self.is_cancelled = True
        self.call = None
        self.args = ()

    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self.is_cancelled

    def __repr__(self) -> str:
        return f"<Callback {self.call!r}>"


_new_callback = Callback.__new__
"""Without a constructor of its own: most of what a workflow does comes by here."""


class RunTask(asyncio.Task[Any]):
    """A task of a workflow. Its hash is its number in its tree.

    `asyncio.wait`, `TaskGroup` and `as_completed` keep tasks in sets, and workflow code walks through `done`. The order
    of a set is that of its hashes. For plain tasks these are memory addresses, which no replay can repeat.
    """

    __slots__ = ("_hash", "home")

    def __init__(self, coro: Any, *, loop: RunLoop, context: contextvars.Context, **options: Any) -> None:
        # A small set of tasks is walked through in the order in which they were made.
        loop.tasks_made += 1
        self._hash = (loop.nonce & 0xF_FFFF_FFFF) << 24 | (loop.tasks_made & 0xFF_FFFF)
        self.home = context
        super().__init__(coro, loop=loop, context=context, **options)

    def __hash__(self) -> int:
        return self._hash


class Condition(NamedTuple):
    """A wait of a task until a function of the workflow's own state returns something true."""

    holds: Callable[[], object]
    future: asyncio.Future[None]
    context: contextvars.Context


class RunLoop(asyncio.AbstractEventLoop):
    """The loop of one tree of runs."""

    def __init__(self, execution: object, *, turns_max: int) -> None:
        self.execution: object | None = execution
        """The `Execution` that it belongs to, until that is dropped."""
        self.timers = Timers()
        self.now_at = 0
        self.nonce = 0
        """The nonce of the tree: it keeps the hashes of its tasks apart from those of other trees."""
        self.is_dropped = False
        self.is_collecting = False
        """The garbage collector runs in the middle of a drain."""
        self._refusals = 0
        self.tasks_made = 0
        self.failed: list[asyncio.Task[Any]] = []
        self._tasks_late: list[RunTask] = []
        """Made by blocks of a dropped run."""
        self._turns_max = turns_max
        self._ready: deque[Callback] = deque()
        self._conditions: list[Condition] = []
        """The conditions for which code of the run waits, oldest first; checked whenever nothing is ready."""

    # -- What asyncio needs ----------------------------------------------------------------------------------

    def time(self) -> float:
        """The time of the last event, in seconds since 1970 UTC."""
        return self.now_at / MICROSECONDS

    def call_soon(  # type: ignore[override]  # typeshed's TypeVarTuple form is not worth its weight here.
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> Callback:
        """Run the callback in this drain, after everything that is ready before it."""
        ready = _new_callback(Callback)
        ready.call = callback
        ready.args = args
        ready.context = contextvars.copy_context() if context is None else context
        ready.is_cancelled = False
        self._ready.append(ready)
        return ready

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> Callback | Timer:
        """Run the callback when the run's clock has moved on by `delay` seconds: a durable timer."""
        if direct_wait.IS_NEEDED and args and type(args[0]) is DirectWait:
            return _new_callback(Callback)  # Such a future has its own timer, and this is never called.
        return self._call_when(self.now_at + _microseconds(delay), callback, args, context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> Callback | Timer:
        """Run the callback when the run's clock has reached `when`: a durable timer."""
        return self._call_when(_microseconds(when), callback, args, context)

    def _call_when(
        self, due_at: int, callback: Callable[..., Any], args: tuple[Any, ...], context: contextvars.Context | None
    ) -> Callback | Timer:
        if due_at <= self.now_at:
            return self.call_soon(callback, *args, context=context)
        timer = Timer(self.timers, min(due_at, FOREVER_AT), callback, args, context or contextvars.copy_context())
        # Not refused in a dropped run: functions of asyncio hold coroutines while they set their timers, and would
        # leave them behind. Who waits for such a timer is closed like all others.
        if not self.is_dropped:
            scope = SCOPE.get()
            self.timers.add(timer, scope.frame.number, scope.call(TIMER))
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        if direct_wait.IS_NEEDED and (wait := direct_wait.begin(sys._getframe(1))) is not None:
            return cast("asyncio.Future[Any]", wait)
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
        **options: Any,
    ) -> asyncio.Task[Any]:
        """A task of this loop, in a scope of its own: that tells the branches of a gather apart."""
        maker = sys._getframe(1)
        _refuse_unordered(maker)
        if direct_wait.IS_NEEDED and (wait := direct_wait.find(maker)) is not None:
            return cast("asyncio.Task[Any]", wait)
        # The scope is that of the code that makes the task, also when the task is given another context.
        scope = SCOPE.get().branch()
        context = contextvars.copy_context() if context is None else context.copy()
        context.run(SCOPE.set, scope)
        task = RunTask(coro, loop=self, name=name, context=context, **options)
        if self.is_dropped:
            self._tasks_late.append(task)
        scope.frame.add_task(task)
        task.add_done_callback(self._note_failed, context=context)
        return task

    def _note_failed(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and _is_unseen(task):
            self.failed.append(task)

    def take_unseen(self) -> list[asyncio.Task[Any]]:
        """The tasks that have failed since the last time and that nothing has asked how they ended."""
        failed, self.failed = self.failed, []
        return [task for task in failed if _is_unseen(task)]

    def get_task_factory(self) -> None:
        """Tasks are made by `create_task` alone; anyio looks here whether it must make them itself."""
        return

    get_debug = staticmethod(bool)
    """False: asyncio's debug mode reads clocks and stacks, and a replay has no use for it. Every future asks, so it
    is not a function of Python."""

    def is_running(self) -> bool:
        """Whether a drain is under way."""
        return asyncio._get_running_loop() is self

    def is_closed(self) -> bool:
        """Whether the run was dropped from memory."""
        return self.is_dropped

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """An error of a background task that was never looked at; a dropped run logs nothing."""
        if not self.is_dropped:
            log.warning("in a workflow: %s", context.get("message"), exc_info=context.get("exception"))

    # -- The motor -------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Run until nothing is ready.

        Raises:
            RunawayError: the workflow keeps itself ready for ever.
        """
        ready = self._ready
        if not ready:
            return
        # For as long as it takes, this is the running loop of the thread, which is in none of its tasks.
        outer = asyncio._get_running_loop()
        task = None if outer is None else asyncio.current_task(outer)
        if outer is not None and task is not None:
            asyncio_tasks._leave_task(outer, task)
        hooks = sys.get_asyncgen_hooks()
        asyncio._set_running_loop(self)
        sys.set_asyncgen_hooks(_remember_nothing, self._finish_generator)
        turns = self._turns_max
        try:
            while ready or (self._conditions and self._end_waits()):
                callback = ready.popleft()
                if callback.call is not None:
                    try:
                        callback.context.run(callback.call, *callback.args)
                    except SystemExit:
                        # A task re-raises it after it has recorded it as its outcome: that outcome is the run's.
                        pass
                    except KeyboardInterrupt as error:
                        if came_by_signal(error):
                            # A person stops the process. That is not an end of a run, and no code may see it as one.
                            ready.clear()
                            raise
                    except BaseException:  # Above a callback there is only the worker.
                        log.exception("a callback of a workflow failed: %r", callback)
                turns -= 1
                if not turns and not self.is_dropped:
                    raise RunawayError(self._turns_max)
        finally:
            sys.set_asyncgen_hooks(*hooks)
            asyncio._set_running_loop(outer)
            if outer is not None and task is not None:
                asyncio_tasks._enter_task(outer, task)

    async def wait_for(self, holds: Callable[[], object]) -> None:
        """Return when a condition holds: at once, or after an event that has made it true."""
        if holds():
            return
        future: asyncio.Future[None] = self.create_future()
        condition = Condition(holds, future, contextvars.copy_context())
        self._conditions.append(condition)
        try:
            await future
        finally:
            if condition in self._conditions:
                self._conditions.remove(condition)

    def _end_waits(self) -> bool:
        """End the waits whose condition holds now; whether anything is ready after that."""
        for condition in [*self._conditions]:
            if condition.future.done():
                continue
            try:
                if condition.context.run(condition.holds):
                    condition.future.set_result(None)
            except Exception as error:  # The condition is the user's: its error is that of the task that waits.
                condition.future.set_exception(error)
        return bool(self._ready)

    def drop(self, tasks: list[RunTask]) -> None:
        """Close every coroutine of the run without anything of it being seen.

        Python runs `finally` blocks when it closes a coroutine. While they run, this loop is the running loop and is
        marked as dropped: every durable call in them raises `RunDropped`, and whatever they make ready is thrown away.
        """
        self.is_dropped = True
        self._conditions.clear()
        self._ready.clear()
        if tasks:
            self.call_soon(self._close_all, tasks, context=contextvars.Context())
            self.drain()

    def _close_all(self, tasks: list[RunTask]) -> None:
        try:
            for task in tasks:
                if not task.done():
                    self._close(task)
            while self._tasks_late:
                self._close(self._tasks_late.pop())
        finally:
            self._ready.clear()

    def _close(self, task: RunTask) -> None:
        # Its blocks are in their own task, as in earnest: `asyncio.timeout` asks for it.
        asyncio_tasks._enter_task(self, task)
        try:
            close_quietly(task.get_coro(), task.home)
        finally:
            asyncio_tasks._leave_task(self, task)

    def may_refuse(self) -> bool:
        """Whether one more call of a dropped run is refused."""
        self._refusals += 1
        return self._refusals <= REFUSALS_MAX

    def _finish_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        # Only if the workflow itself let go of it. The garbage collector comes when it likes, and on any thread: no
        # replay could repeat that, so what it finds is forgotten as it is.
        if self.is_running() and not self.is_dropped and not self.is_collecting:
            self.create_task(generator.aclose())


def _remember_nothing(generator: AsyncGenerator[Any, Any]) -> None:
    """Keep asyncio's own hooks from adopting a workflow's async generators."""


def _note_collection(phase: str, info: dict[str, Any]) -> None:
    loop = asyncio._get_running_loop()
    if type(loop) is RunLoop:
        loop.is_collecting = phase == "start"


gc.callbacks.append(_note_collection)


def _is_unseen(task: asyncio.Task[Any]) -> bool:
    """Whether a task has failed and nothing has looked at its exception."""
    return bool(task._log_traceback)


def _microseconds(seconds: float) -> int:
    return FOREVER_AT if seconds * MICROSECONDS >= FOREVER_AT else round(seconds * MICROSECONDS)


def _refuse_unordered(frame: types.FrameType | None) -> None:
    """Refuse tasks whose order is that of memory addresses: `as_completed` makes its own in the order of a set."""
    while frame is not None and frame.f_globals is asyncio_tasks.__dict__:
        if frame.f_code.co_qualname.startswith(("as_completed", "_AsCompletedIterator")):
            raise NotDurableError(
                "asyncio.as_completed() of coroutines, which it starts in no fixed order (give it tasks, made with "
                "asyncio.create_task(), and it is durable),"
            )
        frame = frame.f_back


def _refuse(name: str) -> Callable[..., NoReturn]:
    def method(self: RunLoop, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotDurableError(f"loop.{name}()")

    method.__name__ = name
    method.__doc__ = "Refused: a journal cannot replay it."
    return method


_REFUSED = [
    name
    for name in dir(asyncio.AbstractEventLoop)
    if not name.startswith("_")
    and name not in vars(RunLoop)
    and name not in {"get_exception_handler", "default_exception_handler"}
]
for _name in _REFUSED:
    setattr(RunLoop, _name, _refuse(_name))
