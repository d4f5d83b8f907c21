"""How the function of a step is called: here, on a thread, in a process, or in a transaction of the store.

The caller enforces the timeout, and looks at the lease again when a step had to wait for a thread or a process. The
executor decides what becomes of the attempt.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import CoroutineType
from typing import Any, assert_never

from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.define.middleware import around
from outlive._kernel.define.step import UnstorableResultError
from outlive._kernel.journal.value import TAGGED
from outlive._kernel.model.published import REMOVED
from outlive._kernel.replay.command import StepKind
from outlive._kernel.runtime.commit.committer import Committer
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.failures import StepRaised
from outlive._kernel.runtime.lease_deadline import LeaseDeadline
from outlive._kernel.runtime.steps.context import in_context
from outlive._kernel.runtime.steps.heartbeats import HeartbeatWatch
from outlive._kernel.runtime.steps.process_child import ChildBeat, ChildJob, ChildReport, Progressed
from outlive._kernel.runtime.steps.processes import ProcessLane
from outlive._kernel.runtime.steps.threads import ThreadLane
from outlive._kernel.runtime.steps.transactions import TransactionSteps
from outlive._kernel.runtime.steps.unstorable import check_size, encode_result
from outlive._kernel.runtime.tree.attempt import Attempt
from outlive._kernel.runtime.tree.live import LiveTree
from outlive._kernel.runtime.tree.step_reports import StepReports
from outlive.errors import StepInterruptedError, StepTimeoutError
from outlive.errors.step import HeartbeatTimeoutError


class NotHeld(BaseException):
    """A thread was free for a step when the lease was not certain any more; the step has not begun."""


class StepCaller:
    """Calls the functions of steps."""

    def __init__(
        self,
        environment: Environment,
        *,
        committer: Committer,
        lease: LeaseDeadline,
        reports: StepReports,
    ) -> None:
        clock, limits = environment.clock, environment.limits
        self._clock = clock
        self.threads = ThreadLane(clock, threads_max=limits.threads_max)
        self.processes = ProcessLane(clock, counters=environment.counters, processes_max=limits.processes_max)
        self.transactions = TransactionSteps(committer, lease, seconds_max=limits.transaction_seconds_max)
        self._resources = environment.resources
        self._on_step = environment.on_step
        self._lease = lease
        self._reports = reports
        self._progress_bytes_max = limits.payload_bytes_max

    def close(self) -> None:
        """End the threads and processes that wait for steps."""
        self.threads.close()
        self.processes.close()

    def call(self, attempt: Attempt, *given: Any) -> Awaitable[Any]:
        """Call the function: `given` comes before the arguments of the workflow."""
        command = attempt.command
        step = command.step
        args, kwargs = step.signature.decode(command.arguments)
        if attempt.given:
            kwargs = kwargs | attempt.given
        if given:
            args = [*given, *args]
        context = contextvars.Context()
        context.run(CURRENT_STEP.set, attempt)
        attempt.has_begun = attempt.has_begun or step.is_async
        options = command.options
        if options.timeout_seconds is not None or options.heartbeat_seconds is not None or self._on_step:
            call = self._call_in_time(attempt, partial(step.fn, *args, **kwargs))
        elif step.is_async:
            call = step.fn(*args, **kwargs)
        else:
            call = self._on_thread(attempt, partial(step.fn, *args, **kwargs))
        return in_context(call, context)

    async def call_undo(self, attempt: Attempt, fn: Callable[..., Any]) -> None:
        """Call an undo inside the attempt of its step, which may have taken long. See `unstorable`."""
        await self.get_resources(attempt)
        await self._lease.until_held()
        await self._call_in_time(attempt, partial(fn, **attempt.given))

    async def get_resources(self, attempt: Attempt) -> None:
        """Get the resources of the function, before anything else of the attempt begins: no transaction is open, and no
        thread is held, while a resource is set up. That may take as long as the function itself."""
        wanted = attempt.command.step.resources
        if wanted is not None:
            attempt.given = await self._in_time(attempt, partial(self._resources.get, wanted))
            await self._lease.until_held()

    def _call_in_time(self, attempt: Attempt, fn: Callable[[], Any]) -> Coroutine[Any, Any, Any]:
        """Call a function, on a thread if it is a plain one, for as long as its timeouts allow."""
        start = fn
        if attempt.command.step.is_async:
            attempt.beat()
        else:
            start = partial(self._on_thread, attempt, fn)
        if self._on_step:
            start = around(self._on_step, attempt.context(), start)
        return self._in_time(attempt, start)

    async def _in_time(self, attempt: Attempt, start: Callable[[], Any]) -> Any:
        options = attempt.command.options
        timeout, watch = asyncio.timeout(options.timeout_seconds), None
        try:
            async with timeout:
                if options.heartbeat_seconds is not None:
                    watch = HeartbeatWatch(self._clock, attempt, timeout, options.heartbeat_seconds)
                try:
                    result = await start()
                finally:
                    if watch is not None:
                        watch.stop()
            if timeout.expired():
                attempt.late = (result, None) if attempt.has_begun else None
                raise TimeoutError(f"it swallowed its cancellation and returned {type(result).__qualname__} too late")
            return result
        except Exception as error:  # An error after its timeout comes too late as well.
            if not timeout.expired() or isinstance(error, UnstorableResultError):
                raise
            attempt.is_timed_out = True
            if attempt.late is None and attempt.has_begun and not _is_from_timeout(error):
                attempt.late = None, error
            late, reason = _late(attempt, was_silent=watch is not None and watch.was_silent)
            if attempt.command.step.kind is StepKind.ONCE and attempt.has_begun:
                # It may have had its effect, just as after a crash, so the workflow gets the same exception.
                raise StepInterruptedError(attempt.command.step.name, reason, attempt.idempotency_key) from late
            raise late from error

    # -- The lease -------------------------------------------------------------------------------------------
    # When a step had to wait (for a thread, a process, a transaction), the lease is looked at again before it begins:
    # it may have been lost meanwhile, and another worker may own the run.

    async def _on_thread(self, attempt: Attempt, fn: Callable[[], Any]) -> Any:
        while True:
            try:
                result = await self.threads.run(partial(self._if_held, attempt, fn), attempt.on_late)
            except NotHeld:
                await self._lease.until_held()
            else:
                # Such as `lambda: fetch(url)`, which looks like a plain function and only calls an async one.
                return await result if type(result) is CoroutineType else result

    def _if_held(self, attempt: Attempt, fn: Callable[[], Any]) -> Any:
        if not self._lease.is_held:
            raise NotHeld
        attempt.has_begun = True
        attempt.beat()
        return fn()

    # -- Kinds of steps --------------------------------------------------------------------------------------

    async def call_kind(self, live: LiveTree, attempt: Attempt, kind: StepKind) -> bytes:
        """The encoded result of a step that is not a plain one."""
        match kind:
            case StepKind.ONCE:
                # Before it waits for a thread: it may be called at any moment from now on.
                attempt.has_begun = True
                live.begun.add((attempt.command.run, attempt.command.call))
                return encode_result(attempt.command, await self.call(attempt), live.payloads.packer)
            case StepKind.PROCESS:
                return await self._call_in_process(live, attempt)
            case StepKind.TRANSACTION:
                return await self.transactions.run(live.journal, attempt, self._call_encoded)
            case _:
                assert_never(kind)

    async def _call_encoded(self, attempt: Attempt, *given: Any) -> bytes:
        command = attempt.command
        value = await self.call(attempt, *given)
        return command.step.signature.result.encode(value, f"result of step {command.call}")

    async def _call_in_process(self, live: LiveTree, attempt: Attempt) -> bytes:
        command, known = attempt.command, attempt.context()
        job = ChildJob(
            step=command.step.name,
            known_as=command.step.known_as,
            module=command.step.fn.__module__,
            call=command.call,
            arguments=command.arguments,
            run_id=known.run_id,
            workflow=known.workflow,
            attempt=command.attempt,
            epoch=attempt.epoch,
            idempotency_key=attempt.idempotency_key,
            progress=command.progress,
            progress_bytes_max=self._progress_bytes_max,
            must_beat=command.options.heartbeat_seconds is not None,
            headers=known.headers,
        )
        # Waiting for a process, and for it to begin, is not the step's time.
        async with self.processes.borrow(command.step.name) as process:
            await self._lease.until_held()
            attempt.has_begun = True
            attempt.beat()
            try:
                run = partial(process.run, job, partial(self._on_report, live, attempt), attempt.emit_encoded)
                result = await self._run_through(attempt, run) if self._on_step else await self._in_time(attempt, run)
            except StepRaised as error:
                if error.is_unstorable and command.options.undo is not None:
                    raise UnstorableResultError(error, None) from error  # Its result is in the other process.
                raise
            check_size(command, result, live.payloads.packer)
            return result

    async def _run_through(self, attempt: Attempt, run: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
        """The encoded result of a step in a process, with middleware around it here."""
        codec, what = attempt.command.step.signature.result, f"result of step {attempt.command.call}"

        async def decoded() -> Any:
            return codec.decode(await run(), what)

        context = contextvars.Context()
        context.run(CURRENT_STEP.set, attempt)
        call = self._in_time(attempt, around(self._on_step, attempt.context(), decoded))
        return codec.encode(await in_context(call, context), what)

    def _on_report(self, live: LiveTree, attempt: Attempt, message: ChildReport) -> None:
        if isinstance(message, Progressed):
            attempt.beat()
            self._reports.progressed(live, attempt, message.progress)
        elif isinstance(message, ChildBeat):
            attempt.beat()
        else:
            fields: dict[str, Any] = TAGGED.decode(message.fields, f"what step {attempt.command.call} publishes")
            self._reports.published(live, attempt, fields | dict.fromkeys(message.removed, REMOVED))


def _late(attempt: Attempt, *, was_silent: bool) -> tuple[StepTimeoutError, str]:
    """The error for an attempt that has taken too long or was silent for too long, and the same in words."""
    step, options = attempt.command.step, attempt.command.options
    if was_silent:
        seconds = options.heartbeat_seconds or 0.0
        return HeartbeatTimeoutError(step.name, seconds), f"has not called heartbeat() for {seconds:g} s"
    seconds = options.timeout_seconds or 0.0
    return StepTimeoutError(step.name, seconds), f"did not end within its timeout of {seconds:g} s"


def _is_from_timeout(error: Exception) -> bool:
    """Whether it is what `asyncio.timeout` makes of the cancellation, and nothing that the step raised itself."""
    return isinstance(error, TimeoutError) and isinstance(error.__cause__, asyncio.CancelledError)
