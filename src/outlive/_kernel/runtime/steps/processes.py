"""Processes for CPU-bound steps: begun when needed, reused, killed when their step is cancelled.

Not `concurrent.futures`: there one process that dies breaks the pool for all steps, and none can be killed alone. Not
`fork`: this process has threads, and a fork in the middle of their work copies their locks, locked.

Each process has a thread here that begins it, talks to it and waits for its end, so that none of this blocks the event
loop. The thread lives as long as its process: where the kernel kills a child with its parent, the parent is the thread
that began it.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from outlive._kernel.runtime.clock import Clock
from outlive._kernel.runtime.failures import StepRaised
from outlive._kernel.runtime.steps.process_child import (
    ARE_YOU_THERE,
    ChildBeat,
    ChildJob,
    ChildMessage,
    ChildReport,
    Emitted,
    Progressed,
    Published,
    Raised,
    Ready,
    Returned,
    decode_message,
    encode,
    serve,
)
from outlive._platform import hold_back_interrupts, kill_group
from outlive.errors import OutliveError
from outlive.errors.step import ProcessDiedError
from outlive.telemetry import Counters, log

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

BEGIN_SECONDS_MAX = 60
"""How long a new process may take to import the modules that it needs."""
LOOK_SECONDS = 1.0
"""How often to see whether a process that sends nothing is alive."""

_NOT_BEGUN = (
    " before it could begin (it imports the script that this process runs: what a script does, it must do under "
    '`if __name__ == "__main__":`)'
)


class ProcessLane:
    """Runs steps in up to `processes_max` processes; the others wait in order."""

    def __init__(self, clock: Clock, *, counters: Counters, processes_max: int) -> None:
        self._clock = clock
        self._counters = counters
        self._room = asyncio.Semaphore(processes_max)
        self._idle: list[StepProcess] = []
        self._all: set[StepProcess] = set()

    @asynccontextmanager
    async def borrow(self, step: str) -> AsyncIterator[StepProcess]:
        """A process that is ready; one that has not ended its job when it is given back is killed.

        Raises:
            ProcessDiedError: it could not begin.
        """
        async with self._room:
            process = await self._find_ready(step)
            try:
                yield process
            finally:
                if process.is_idle and process in self._all:
                    self._idle.append(process)
                else:
                    self._discard(process)

    @property
    def is_busy(self) -> bool:
        """Whether each of its processes is ready, and lent to a step."""
        return not self._idle and all(process.is_ready for process in self._all)

    def close(self) -> None:
        """Kill all of them."""
        atexit.unregister(self.close)
        for process in list(self._all):
            self._discard(process)
        self._idle.clear()

    async def _find_ready(self, step: str) -> StepProcess:
        while True:
            # An idle process that has died since its last job is replaced; that is not a failure of the step.
            is_used = bool(self._idle)
            process = self._idle.pop() if is_used else self._begin()
            try:
                await process.get_ready()
            except ChildProcessError as error:
                self._discard(process)
                if not is_used:
                    log.warning("the process of step %s %s", step, error)
                    raise ProcessDiedError(step, str(error)) from None
            except BaseException:
                self._discard(process)
                raise
            else:
                return process

    def _begin(self) -> StepProcess:
        if not self._all:
            # At the end of the interpreter too, and before `multiprocessing` waits for its children: what is registered
            # last comes first.
            import multiprocessing.util  # noqa: F401

            atexit.unregister(self.close)
            atexit.register(self.close)
        process = StepProcess()
        self._all.add(process)
        self._counters.processes_begun += 1
        self._clock.spawn(process.live, name="outlive-process")
        return process

    def _discard(self, process: StepProcess) -> None:
        self._all.discard(process)
        process.kill()


OnReport = Callable[[ChildReport], None]
EmitItem = Callable[[str, bytes], Future[None] | None]


class StepProcess:
    """One process, as seen from here. `live` is its thread; everything else belongs to the event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[bytes | None] = SimpleQueue()
        self._process: SpawnProcess | None = None
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._answer: asyncio.Future[Returned | Raised] | None = None
        self._report: OnReport = _ignore
        self._emit: EmitItem = _ignore_item
        self._is_wanted = True
        self._has_begun = False

    @property
    def is_ready(self) -> bool:
        """Whether it takes a job, or has one."""
        return self._ready.done()

    @property
    def is_idle(self) -> bool:
        """Whether it is ready and has nothing to do."""
        return self.is_ready and self._answer is None

    async def get_ready(self) -> None:
        """Wait until it takes jobs: it has begun, or, if it has done some before, is still there.

        Raises:
            ChildProcessError: it died, or took too long.
        """
        if self._ready.done():
            self._ready = self._loop.create_future()
            self._jobs.put(ARE_YOU_THERE)
        late = self._loop.call_later(BEGIN_SECONDS_MAX, self._on_died, f"did not begin within {BEGIN_SECONDS_MAX} s")
        try:
            await self._ready
        finally:
            late.cancel()

    async def run(self, job: ChildJob, report: OnReport, emit: EmitItem | None = None) -> bytes:
        """The encoded result of a step; `report` is called with its progress and what it publishes, and `emit`, on
        another thread, with what it emits.

        Raises:
            StepRaised: the step raised.
            ProcessDiedError: the process died.
        """
        self._report, self._emit = report, emit or _ignore_item
        self._answer = self._loop.create_future()
        self._jobs.put(encode(job))
        try:
            outcome = await self._answer
        except ChildProcessError as error:
            log.warning("the process of step %s %s", job.step, error)
            raise ProcessDiedError(job.step, str(error)) from None
        self._answer, self._report, self._emit = None, _ignore, _ignore_item
        if isinstance(outcome, Raised):
            raise StepRaised(
                outcome.failure, outcome.classes, is_final=outcome.is_final, is_unstorable=outcome.is_unstorable
            )
        return outcome.result

    def kill(self) -> None:
        """End it at once, with everything that it has started; may be called twice."""
        self._is_wanted = False
        self._jobs.put(None)
        if self._process is not None:
            _kill(self._process)

    # -- Its messages --------------------------------------------------------------------------------------------------

    def _on_message(self, message: Ready | ChildReport | Returned | Raised) -> None:
        match message:
            case Ready():
                if not self._ready.done():
                    self._ready.set_result(None)
            case Progressed() | ChildBeat() | Published():
                self._report(message)
            case Returned() | Raised():
                if self._answer is not None and not self._answer.done():
                    self._answer.set_result(message)

    def _on_died(self, reason: str) -> None:
        error = ChildProcessError(reason)
        for future in (self._ready, self._answer):
            if future is not None and not future.done():
                future.set_exception(error)
                future.exception()  # If no task waits for it, asyncio must not log that.

    # -- Its thread ----------------------------------------------------------------------------------------------------

    def live(self) -> None:
        """Begin the process, give it jobs, see it end."""
        try:
            process, connection = _begin_process()
        except Exception as error:  # The system has no room for it, or this process is only just being imported.
            self._post(self._on_died, f"could not begin: {type(error).__qualname__}: {error}")
            return
        self._process = process
        if not self._is_wanted:
            _kill(process)
        with connection:
            try:
                self._talk(process, connection)
            except (EOFError, OSError):
                """It has ended, or is about to."""
            except Exception:  # The attempt would wait for ever.
                log.exception("a process of a step has sent a message that cannot be read; it is killed")
                _kill(process)
        process.join()
        kill_group(process.pid or 0)
        self._post(self._on_died, _how_it_ended(process.exitcode) + ("" if self._has_begun else _NOT_BEGUN))

    def _talk(self, process: SpawnProcess, connection: Connection) -> None:
        self._post(self._on_message, decode_message(_receive(process, connection)))
        self._has_begun = True
        while (job := self._jobs.get()) is not None:
            connection.send_bytes(job)
            del job
            message: ChildMessage = Progressed(b"")
            while isinstance(message, ChildReport | Emitted):
                message = decode_message(_receive(process, connection))
                if isinstance(message, Emitted):
                    self._take_item(message)
                else:
                    self._post(self._on_message, message)

    def _take_item(self, message: Emitted) -> None:
        """Not on the event loop: while there is no room for the item, the pipe fills, and the step waits."""
        # If earlier items could not be written, the attempt fails for it when the step returns.
        with suppress(OutliveError):
            if (room := self._emit(message.stream, message.data)) is not None:
                room.result()

    def _post(self, callback: Callable[[Any], None], value: Any) -> None:
        """Call something on the event loop."""
        with suppress(RuntimeError):  # The event loop is closed: no attempt waits.
            self._loop.call_soon_threadsafe(callback, value)


def _begin_process() -> tuple[SpawnProcess, Connection]:
    import multiprocessing

    # The parent handles Ctrl-C: the new process inherits that this thread blocks it, until it runs our code.
    hold_back_interrupts()
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    try:
        # Not a daemon, because a daemon of `multiprocessing` may have no children, and a step may need some.
        process = context.Process(target=serve, args=(theirs, os.getpid()), name="outlive-step", daemon=False)
        process.start()
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


def _receive(process: SpawnProcess, connection: Connection) -> bytes:
    """The next message. The pipe may stay open when the process has ended: what it has forked has the pipe too.

    Raises:
        EOFError, OSError: it has ended, or the pipe has.
    """
    while not connection.poll(LOOK_SECONDS):
        if not process.is_alive() and not connection.poll():
            raise EOFError
    return connection.recv_bytes()


def _kill(process: SpawnProcess) -> None:
    if process.is_alive() and not kill_group(process.pid or 0):
        process.kill()


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "died"
    if code >= 0:
        return f"ended by itself with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (out of memory, perhaps)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


def _ignore(message: ChildReport) -> None:
    """No job runs: there is no attempt to report to."""


def _ignore_item(stream: str, data: bytes) -> None:
    """No job runs: there is no attempt to which the item belongs."""
