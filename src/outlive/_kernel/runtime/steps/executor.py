"""Runs attempts of steps and reports each outcome as an event.

Which attempts run now and which wait is decided here, and how a function is called in `caller`. An attempt that fails
is retried if its policy says so: the failure and the time of the next attempt go into the journal, and until then the
step takes no room. The executor never feeds an execution: outcomes are reported to the worker, which does that from a
plain callback.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import CoroutineType
from typing import Any, assert_never

from msgspec import structs

from outlive._interrupts import came_by_signal
from outlive._kernel.define.step import UnstorableResultError
from outlive._kernel.journal.event import AnyEvent, AttemptFailed, StepDelayed, StepFailed
from outlive._kernel.model.policy import NO_RETRY
from outlive._kernel.replay.command import RunStep, StepKind
from outlive._kernel.runtime.commit.committer import Committer, rolled_back
from outlive._kernel.runtime.environment import Environment
from outlive._kernel.runtime.failures import describe
from outlive._kernel.runtime.gate.breakers import end_of
from outlive._kernel.runtime.gate.gate import Gate
from outlive._kernel.runtime.gate.ticket import AttemptEnd
from outlive._kernel.runtime.lease_deadline import LOOK_AGAIN_SECONDS, LeaseDeadline
from outlive._kernel.runtime.reporter import REPORT_SECONDS, Reporter
from outlive._kernel.runtime.steps.caller import NotHeld, StepCaller
from outlive._kernel.runtime.steps.next_attempt import next_attempt
from outlive._kernel.runtime.steps.notes import AttemptNotes
from outlive._kernel.runtime.steps.outcome import AttemptOutcome, Late, RolledBack, Unwanted, Wanted
from outlive._kernel.runtime.steps.unstorable import encode_result, why_undone
from outlive._kernel.runtime.tree.attempt import Attempt
from outlive._kernel.runtime.tree.emitter import Emitter, ItemSource
from outlive._kernel.runtime.tree.live import LiveTree
from outlive._kernel.runtime.tree.step_reports import StepReports
from outlive._kernel.runtime.tree.stream_writer import StreamWriter
from outlive._tasks import own_task
from outlive.errors import OutliveError, StepInterruptedError, StepTimeoutError

_STOPPED = (asyncio.CancelledError, StepTimeoutError, StepInterruptedError)
"""The exceptions of an attempt that was stopped, and did not fail by itself."""

STEPS_PER_LANE_MAX = 100
"""Steps that one lane runs before the event loop gets a turn."""


class Executor:
    """Runs up to `steps_max` attempts at once; the others wait in order."""

    def __init__(
        self,
        environment: Environment,
        *,
        committer: Committer,
        gate: Gate,
        lease: LeaseDeadline,
        reports: StepReports,
        streams: StreamWriter,
        reporter: Reporter,
        turn_back: Callable[[LiveTree, RunStep], None],
    ) -> None:
        self._clock = environment.clock
        self._counters = environment.counters
        self._steps_max = environment.limits.steps_running_max
        self._progress_bytes_max = environment.limits.payload_bytes_max
        self._engine = environment.engine
        self._lease, self._lifetime = lease, environment.lifetime
        self._turn_back = turn_back
        """Called with a step that would not end before this worker does."""
        self._gate = gate
        self._monotonic = self._clock.monotonic
        self._reports = reports
        self._streams = streams
        self.caller = StepCaller(environment, committer=committer, lease=lease, reports=reports)
        self._queue: deque[tuple[LiveTree, Attempt]] = deque()
        self._passed: deque[tuple[LiveTree, Attempt]] = deque()
        """Attempts that passed the gate without a wait: each has room."""
        self._asking = 0
        """Attempts that take room while the gate is asked; one that has to wait there takes none."""
        self._is_opening = False
        self.running = 0
        self.under_way: dict[Attempt, LiveTree] = {}
        """The attempts that run, in the order in which they began."""
        self._reporter = reporter
        reporter.sources.append(AttemptNotes(self.under_way))
        self._loop = asyncio.get_running_loop()

    def start(self, live: LiveTree, command: RunStep) -> None:
        """Begin an attempt now, or as soon as there is room."""
        runs = live.fold.runs
        attempt = Attempt(
            command,
            run=runs[command.run],
            epoch=runs[0].epoch,
            loop=self._loop,
            now=self._clock.now,
            save=partial(self._reports.progressed, live),
            publish=partial(self._reports.published, live),
            open_emitter=partial(self._open_emitter, live),
            progress_bytes_max=self._progress_bytes_max,
            headers=live.execution.headers,
            engine=self._engine,
        )
        live.attempts[command.run, command.call] = attempt
        self._queue.append((live, attempt))
        if not self._is_opening:
            self._open_lane()

    def _open_emitter(self, live: LiveTree, attempt: Attempt) -> Emitter:
        """For the first item that an attempt emits; from any thread."""
        live.has_readers = True
        command = attempt.command
        source = ItemSource(live.id, live.journal, command.run, command.call, command.attempt, attempt.epoch)
        return self._streams.open(source)

    def _admit(self, live: LiveTree, attempt: Attempt) -> None:
        """Ask the gate. There is room, so that an attempt that passes begins at once."""
        self._asking += 1
        attempt.ticket = self._gate.admit(_Applicant(self, live, attempt))

    def free_room(self) -> None:
        """An attempt at the gate needs no room any more."""
        self._asking -= 1
        self._open_lanes_soon()

    def let_in(self, live: LiveTree, attempt: Attempt) -> None:
        """An attempt has passed the gate."""
        if attempt.ticket is not None and attempt.ticket.has_slept:
            self._queue.appendleft((live, attempt))
        else:
            self._passed.append((live, attempt))
        self._open_lanes_soon()

    def turn_away(self, live: LiveTree, attempt: Attempt, event: AnyEvent) -> None:
        """The gate has delayed or refused an attempt."""
        del live.attempts[attempt.command.run, attempt.command.call]
        self._reports.ended(live, attempt, None, event)

    @property
    def is_resting(self) -> bool:
        """Whether every attempt that can begin has begun."""
        can_begin = (self._queue or self._passed) and self._has_room
        return not self._is_opening and not can_begin and self._gate.is_resting

    def cancel(self, live: LiveTree, run: int, call: str) -> None:
        """Cancel an attempt whose outcome the run does not wait for any more."""
        attempt = live.attempts.pop((run, call), None)
        if attempt is not None:
            attempt.cancel()
            if attempt.ticket is not None:
                # An attempt that is cancelled in the middle of its call was too slow; before it, that says nothing.
                attempt.ticket.end(AttemptEnd.BAD if attempt.has_begun else AttemptEnd.UNKNOWN)
        if (waiting := live.cancelled_turns.pop((run, call), None)) is not None:
            self._gate.give_back(waiting)

    def cancel_all(self, live: LiveTree) -> None:
        """Cancel all attempts of a tree: another worker will make them, or none for now."""
        for attempt in live.attempts.values():
            attempt.cancel()
            if attempt.ticket is not None:
                attempt.ticket.end(AttemptEnd.UNKNOWN)
        live.attempts.clear()

    def withdraw_waiting(self, live: LiveTree) -> list[RunStep]:
        """Cancel the attempts of a tree that wait for room or at the gate, and not the attempts that run; returns
        which ones."""
        waiting = [attempt.command for attempt in live.attempts.values() if attempt.task is None]
        for command in waiting:
            self.cancel(live, command.run, command.call)
        return waiting

    def cancel_rest(self, live: LiveTree) -> None:
        """A tree has ended: cancel the attempts that still run, or are lined up."""
        for run, call in [*live.attempts, *live.cancelled_turns]:
            self.cancel(live, run, call)

    def close(self) -> None:
        """Begin nothing more, and end the threads and processes of steps."""
        self._queue.clear()
        self._passed.clear()
        self.caller.close()

    # -- Lanes -----------------------------------------------------------------------------------------------

    @property
    def _has_room(self) -> bool:
        return self.running + self._asking < self._steps_max

    def _open_lanes_soon(self) -> None:
        if not self._is_opening:
            self._is_opening = True
            self._loop.call_soon(self._open_lane)

    def _open_lane(self) -> None:
        """Open a lane if attempts wait. Look again once it has run as far as it can: if it waits, they need another."""
        self._is_opening = False
        is_wanted = self._queue or self._passed
        if is_wanted and self._monotonic() >= self._lease.until:
            # The lease may be gone: nothing new begins until it is renewed, or the runs are discarded.
            self._is_opening = True
            self._loop.call_later(LOOK_AGAIN_SECONDS, self._open_lane)
        elif is_wanted and self._has_room:
            lane: list[asyncio.Task[None]] = []
            lane.append(own_task(self._run_lane(lane), name="outlive-steps"))
            self._open_lanes_soon()

    async def _run_lane(self, lane: list[asyncio.Task[None]]) -> None:
        for _ in range(STEPS_PER_LANE_MAX):
            first = self._passed or self._queue
            is_full = self.running + self._asking >= self._steps_max
            if not first or is_full or self._monotonic() >= self._lease.until:
                break
            live, attempt = first.popleft()
            # An attempt that its run has cancelled while it waited does not begin, even if that is not durable yet.
            is_wanted = attempt.is_wanted and (attempt.command.run, attempt.command.call) in live.execution.calls
            guard, ticket = attempt.command.options.guard, attempt.ticket
            if is_wanted and self._lifetime is not None:
                is_wanted = self._lifetime.fits(attempt.command.options.timeout_seconds)
                if not is_wanted:
                    self._put_back(live, attempt)
                    continue
            if is_wanted and (guard is None if ticket is None else self._gate.may_begin(ticket)):
                await self._run(live, attempt, lane[0])
                if lane[0].cancelling():
                    # A cancelled task is of no use to another step.
                    break
                continue
            if attempt.ticket is not None:
                attempt.ticket.end(AttemptEnd.UNKNOWN)
            if is_wanted:
                self._admit(live, attempt)
        if self._queue or self._passed:
            self._open_lanes_soon()

    def _put_back(self, live: LiveTree, attempt: Attempt) -> None:
        """An attempt would not end before this worker does."""
        del live.attempts[attempt.command.run, attempt.command.call]
        if attempt.ticket is not None:
            attempt.ticket.end(AttemptEnd.UNKNOWN)
        self._counters.steps_unfit += 1
        self._loop.call_soon(self._turn_back, live, attempt.command)

    async def _run(self, live: LiveTree, attempt: Attempt, task: asyncio.Task[None]) -> None:
        command = attempt.command
        self.running += 1
        attempt.began_at = self._clock.now()
        self.under_way[attempt] = live
        if (reporter := self._reporter).alarm is None:
            # Not a function of its own: every step comes by here, and this is done once in some seconds.
            reporter.alarm = self._loop.call_later(REPORT_SECONDS, reporter.look)
        self._counters.step_started(attempt)
        if live.observers is not None:
            live.observers.started(command)
        attempt.task = task
        if not command.step.is_async:
            attempt.on_late = partial(self._on_late, live, attempt)
        match await self._outcome(live, attempt):
            case Wanted(result, failure):
                del live.attempts[command.run, command.call]
                self._reports.ended(live, attempt, result, failure)
            case Late(result, error):
                self._ended_late(live, attempt, result, error)
            case RolledBack(transaction):
                await rolled_back(transaction)
            case Unwanted():
                pass
            case outcome:
                assert_never(outcome)
        if attempt.late is not None:  # Its time was over before: the run gets the timeout first.
            self._on_late(live, attempt, *attempt.late)

    async def _outcome(self, live: LiveTree, attempt: Attempt) -> AttemptOutcome:
        """Call the function, give the ticket back, and decide who hears of what it returned or raised."""
        command, ticket, caller = attempt.command, attempt.ticket, self.caller
        result: bytes | None = None
        raised: BaseException | None = None
        try:
            if command.step.resources is not None:
                await caller.get_resources(attempt)
            if command.step.kind is None:
                result = encode_result(command, await caller.call(attempt), live.payloads.packer)
            else:
                result = await caller.call_kind(live, attempt, command.step.kind)
            if attempt.emitter is not None:
                await self._flush(attempt, attempt.emitter)
        except BaseException as error:  # The user's code may raise anything; its failure is data.
            if came_by_signal(error):
                raise  # Ctrl-C ends the process; it is not a failure of the step.
            raised = error
            if isinstance(error, UnstorableResultError):
                raised = await why_undone(attempt, error, caller.call_undo)
            if attempt.emitter is not None:
                await _flush_rest(attempt, attempt.emitter)
        finally:
            self.running -= 1
            del self.under_way[attempt]
        if ticket is not None:
            ticket.end(end_of(ticket.guard.breaker, raised) if attempt.has_begun else AttemptEnd.UNKNOWN)
        if attempt.is_wanted:
            # A cancellation, if the executor did not cancel it, is one of the step's own that has escaped: a failure.
            return Wanted(result, None if raised is None else self.failed(command, raised, attempt.began_at))
        if attempt.transaction is not None:
            return RolledBack(attempt.transaction)
        if attempt.has_begun and not isinstance(raised, _STOPPED):
            return Late(result, raised)
        return Unwanted()

    def _on_late(self, live: LiveTree, attempt: Attempt, value: Any, error: BaseException | None) -> None:
        """The function of an attempt has returned or raised, and the run had given the attempt up before."""
        if isinstance(value, CoroutineType):
            value.close()
        if isinstance(error, NotHeld) or isinstance(value, CoroutineType):
            return  # Its function was not called, or has done nothing but make a coroutine.
        command, result = attempt.command, None
        if error is None:
            try:
                result = command.step.signature.result.encode(value, f"late result of step {command.call}")
            except Exception as unstorable:  # A class of the user may do anything when it is encoded.
                error = unstorable
        self._ended_late(live, attempt, result, error)

    def _ended_late(self, live: LiveTree, attempt: Attempt, result: bytes | None, error: BaseException | None) -> None:
        if attempt.command.step.kind is not StepKind.TRANSACTION:  # The writes of that one were rolled back.
            self._reports.ended_late(live, attempt, result, None if error is None else describe(error))

    async def _flush(self, attempt: Attempt, emitter: Emitter) -> None:
        """Write the items that an attempt has emitted: they are durable before its result."""
        try:
            await emitter.flush()
        except OutliveError:
            if (transaction := attempt.transaction) is not None:
                attempt.transaction = None  # The step has failed.
                await rolled_back(transaction)
            raise

    def failed(self, command: RunStep, error: BaseException, began_at: int = 0) -> AnyEvent:
        """The event of a failed attempt: another one follows if the policy says so, else the step has failed."""
        at, attempt = self._clock.now(), command.attempt
        took = max(0, at - began_at) if began_at else 0  # The clock may have been set back.
        retry, first_at = command.options.retry or NO_RETRY, command.first_at or began_at or at
        failure = describe(error)
        following = next_attempt(
            retry, error, command, at=at, first_at=first_at, spread=lambda: self._clock.random() * 2 - 1
        )
        if following.note:
            failure = structs.replace(failure, notes=(*failure.notes, following.note))
        if following.at is not None:
            self._counters.steps_retried += 1
            return AttemptFailed(
                at=at,
                run=command.run,
                call=command.call,
                failure=failure,
                attempt=attempt,
                retry_at=following.at,
                digest=command.digest,
                first_at=0 if retry.elapsed_max is None else first_at,
                took=took,
            )
        return StepFailed(
            at=at,
            run=command.run,
            call=command.call,
            failure=failure,
            digest=command.digest,
            attempt=attempt,
            took=took,
        )


class _Applicant:
    """An attempt at the gate; see `outlive._kernel.runtime.gate.gate.Applicant`."""

    def __init__(self, executor: Executor, live: LiveTree, attempt: Attempt) -> None:
        self.command = attempt.command
        self.room_freed = executor.free_room
        self._executor = executor
        self._live = live
        self._attempt = attempt

    def found_open(self, breaker: str, until_at: int) -> None:
        if self._live.observers is not None:
            self._live.observers.circuit_open(self.command, breaker, until_at=until_at)

    def passed(self) -> None:
        self._executor.let_in(self._live, self._attempt)

    def delayed(self, event: StepDelayed) -> None:
        self._executor.turn_away(self._live, self._attempt, event)

    def refused(self, error: BaseException) -> None:
        self._executor.turn_away(self._live, self._attempt, self._executor.failed(self.command, error))


async def _flush_rest(attempt: Attempt, emitter: Emitter) -> None:
    """An attempt has failed: what it emitted comes before what the next one does. Why it has failed is more important
    than that this could not be written."""
    with suppress(OutliveError, asyncio.CancelledError):
        if attempt.is_wanted:
            await emitter.flush()
    emitter.close()
