"""One tree of runs as a pure function of its journal: `feed(event) -> commands`.

    execution = Execution(root_id, resolve=..., unpack=...)
    for event in journal:
        commands = execution.feed(event)

Live execution is replay: the worker makes every outcome an event and feeds it here; recovery feeds the same events from
the store. There is no other way in, so what works live cannot break on recovery.

Feeding an event answers one durable call (or fires a timer, or hands over a signal), moves the run's clock to the time
of the event, and runs the loop until nothing is ready. What the workflow asked for meanwhile comes back as commands. An
event that answers a call the code did not make, or made with other arguments, contradicts the code: the execution stops
with a `Park` command that carries a readable diff, and is of no use after that.

What this is not: it has no clock, does no I/O, knows no store and no thread. It does not decide when a timer is due or
a step is retried; it says what it waits for (`waits`, `wake_at`) and is told what happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import UNSET

from outlive._journal.event import (
    AnyEvent,
    ApprovalClosed,
    ApprovalDecided,
    ApprovalEscalated,
    ApprovalRequested,
    AttemptFailed,
    CancelRequested,
    DetachedCancelled,
    DetachedEnded,
    DetachedStarted,
    Ending,
    PatchTaken,
    RunCancelled,
    RunClaimed,
    RunContinued,
    RunCreated,
    RunFailed,
    RunParked,
    RunPublished,
    RunReleased,
    RunResumed,
    RunSucceeded,
    RunSuspended,
    RunTimedOut,
    SignalReceived,
    StepFailed,
    StepIntended,
    StepProgressed,
    StepSucceeded,
    TimerFired,
)
from outlive._journal.failure import OWN_ERRORS, exception_of
from outlive._journal.value import Stored
from outlive._model import Payload, RunStatus, Wait, child_id
from outlive._model.payload import NO_PAYLOAD
from outlive._replay.asking import read_decision
from outlive._replay.call import Call, ChildCall, DetachedCall, RecordCall, StepCall
from outlive._replay.command import (
    Command,
    EndRun,
    Park,
    Record,
    Recorded,
    WorkflowSpec,
)
from outlive._replay.continuing import overrule
from outlive._replay.divergence import contradiction, other_arguments, reason_of, unasked
from outlive._replay.ending import DEADLINE, STATUS, child_outcome, end_closed, main_done
from outlive._replay.foresight import NOTHING_AHEAD, Foresight
from outlive._replay.frame import SCOPE, Frame
from outlive._replay.loop import RunLoop, RunTask, Timer
from outlive._replay.saga import SAGA, Saga
from outlive._replay.timers import Timers
from outlive._replay.waiting import stuck_at, waits_of
from outlive.errors import (
    DivergenceError,
    OutliveError,
    RunawayError,
    RunDropped,
    StuckError,
    UnreadableError,
    WorkflowNotFoundError,
)

CallT = TypeVar("CallT", StepCall, ChildCall, DetachedCall, RecordCall)

TIMER = "@timer"


class Execution:
    """The workflow code of one tree, fed with its journal."""

    def __init__(
        self,
        root_id: str,
        *,
        resolve: Callable[[str, int], WorkflowSpec],
        unpack: Callable[[Payload], Stored],
        unpack_foreign: Callable[[Payload], Stored] | None = None,
        turns_max: int = 1_000_000,
    ) -> None:
        self.root_id = root_id
        self.nonce = 0
        self.generation = 0
        self.events = 0
        """How many events were fed: the seq of the next one."""
        self.is_parked = False
        self.foresight = NOTHING_AHEAD
        self.has_items = False
        """Whether outcomes of steps and children may be those of items."""
        self.frames: dict[int, Frame] = {}
        # What a workflow may not use is refused by methods that are set after the class body; mypy cannot see them.
        self.loop = RunLoop(self, turns_max=turns_max)  # type: ignore[abstract]
        self._resolve = resolve
        self.unpack = unpack
        self.unpack_foreign = unpack_foreign or unpack
        """For values that another tree made: the results of detached runs."""
        self.commands: list[Command] = []
        self.calls: dict[tuple[int, str], Call] = {}
        self.children: dict[int, ChildCall] = {}
        """The calls that started runs of this tree, by the number of the child, until it has ended."""
        self.closing: list[Frame] = []
        """Runs whose workflow has ended and whose last tasks and children have not."""
        self.timers = Timers()
        self.next_number = 1
        self.ended: dict[str, DetachedEnded] = {}
        self.end_waiters: dict[str, list[asyncio.Future[DetachedEnded]]] = {}

    # -- Events in, commands out -----------------------------------------------------------------------------

    def feed(self, event: AnyEvent) -> list[Command]:
        """Take the next event of the journal; what the run asks for because of it."""
        handle = _HANDLERS[type(event)]
        if handle is not None and not self.is_parked:
            try:
                if event.at > self.loop.now_at:
                    self.loop.now_at = event.at
                handle(self, event)
                self.loop.drain()
                if self.closing:
                    end_closed(self)
                # Every child that runs is also a call of its parent: no other call is open.
                if len(self.calls) < len(self.frames) and not self.timers:
                    self._check_not_stuck()
            except (DivergenceError, UnreadableError, RunawayError, StuckError, WorkflowNotFoundError) as error:
                self.park(error, event.run)
        self.events += 1
        commands, self.commands = self.commands, []
        return [command for command in commands if isinstance(command, Park)] if self.is_parked else commands

    def foresee(self, events: Sequence[AnyEvent]) -> None:
        """Before a replay: the whole journal that is about to be fed."""
        self.foresight = Foresight(events)

    def outstanding(self) -> list[Command]:
        """Everything asked for and not answered so far, oldest first: what is left to do after a replay."""
        if self.is_parked:
            return []
        asked = [call for call in self.calls.values() if not (isinstance(call, ChildCall) and call.frame is not None)]
        endings = [frame.ending for frame in self.frames.values() if frame.ending is not None]
        return [*(call.command for call in asked), *endings]

    def expects(self, run: int, call: str) -> bool:
        """Whether the run still waits for the outcome of this call."""
        return (run, call) in self.calls

    def park(self, error: OutliveError, run: int = 0) -> None:
        """Stop here: going on would be wrong, failing would lose the run."""
        if not self.is_parked:
            self.is_parked = True
            self.commands = [Park(reason=reason_of(self, error, run))]

    def drop(self) -> None:
        """Leave memory without a trace: nothing in a `finally` block of the workflow can be seen from outside.

        Takes itself apart afterwards. Loop, tasks, contexts and frames refer to each other in circles, and thousands of
        runs an instant are more than the garbage collector should have to find.
        """
        self.loop.drop([task for frame in self.frames.values() for task in frame.tasks])
        for frame in self.frames.values():
            frame.forget_tasks()
        for things in (self.commands, self.frames, self.calls, self.children, self.ended, self.end_waiters):
            things.clear()
        self.closing.clear()
        self.timers = Timers()
        self.unpack = self.unpack_foreign = _nothing
        self.loop.execution = None

    # -- What it waits for -----------------------------------------------------------------------------------

    def wake_at(self) -> int | None:
        """When the next timer is due."""
        timer = self.timers.next()
        return None if timer is None else timer.due_at

    def due_timer(self, now_at: int) -> Timer | None:
        """The timer to fire first, if one is due."""
        timer = self.timers.next()
        return timer if timer is not None and timer.due_at <= now_at else None

    def waits(self) -> tuple[Wait, ...]:
        """Everything that could move the run, as data."""
        return waits_of(self.timers, self.calls.values(), self.frames.values(), self.end_waiters)

    # -- What a run decides by itself ------------------------------------------------------------------------

    def record(self, fact: Recorded, data: bytes | None = None) -> None:
        """Write a fact of the run's own into the journal, with `data` as its payload; it has `at=0` until then."""
        command = Record(fact.run, fact.call, fact, data)
        self.calls[fact.run, fact.call] = RecordCall(command)
        self.commands.append(command)

    def _on_recorded(self, event: Recorded) -> None:
        told = f"{type(event).__name__} {event.call}"
        call = self._find(event, event.run, event.call, RecordCall, told)
        if as_asked(event) != call.command.fact:
            raise contradiction(self, event, told, f"asks for {call} with other arguments")
        del self.calls[event.run, event.call]

    def _on_published(self, event: RunPublished) -> None:
        if event.call:
            self._on_recorded(event)
        elif event.run in self.frames:
            # A step said it: nothing that the workflow could contradict.
            self.frames[event.run].published = bytes(self.unpack(event.payload))

    def _on_patched(self, event: PatchTaken) -> None:
        # Code that no longer asks is code that takes the new way only: that contradicts nothing.
        self.calls.pop((event.run, event.call), None)
        if event.run in self.frames:
            self.frames[event.run].patches[event.call] = True

    # -- Timers ----------------------------------------------------------------------------------------------

    def begin_timer(self, timer: Timer) -> None:
        """A timer of the workflow; called by its loop."""
        # Not refused in a dropped run: functions of asyncio hold coroutines while they set their timers, and would
        # leave them behind. Who waits for such a timer is closed like all others.
        if not self.loop.is_dropped:
            scope = SCOPE.get()
            self.timers.add(timer, scope.frame.number, scope.call(TIMER))

    def forget_timer(self, timer: Timer) -> None:
        """The workflow no longer waits for this timer."""
        self.timers.take(timer.run, timer.name)

    def refuse_if_dropped(self) -> None:
        """A dropped run's `finally` blocks may ask for nothing."""
        if self.loop.is_dropped and self.loop.may_refuse():
            raise RunDropped

    # -- What each event does --------------------------------------------------------------------------------

    def _on_created(self, event: RunCreated) -> None:
        if event.run == 0:
            spec = self._resolve(event.workflow, event.version)
            self.nonce = self.loop.nonce = event.nonce
            self.generation = event.generation
            self._start_frame(event, spec)
            return
        call = self._find(
            event, event.parent, event.call, ChildCall, f"child run {event.workflow} ({event.call}) was started"
        )
        self._check_digest(event, call.command.digest, event.digest, event.call)
        if call.command.run != event.run or call.command.workflow.name != event.workflow:
            asked = f"asks for {call.command.workflow.name} as child run {call.command.run}"
            raise contradiction(self, event, f"child run {event.run} is {event.workflow} ({event.call})", asked)
        call.frame = self._start_frame(event, self._resolve(event.workflow, event.version), call.saga)
        if call.is_cancelled:
            self.cancel_frame(call.frame, "cancelled by its parent")

    def _start_frame(self, event: RunCreated, spec: WorkflowSpec, saga: Saga | None = None) -> Frame:
        frame = Frame(event.run, child_id(self.root_id, event.run), spec, self.nonce)
        frame.tags = event.tags
        self.frames[event.run] = frame
        args, kwargs = spec.signature.decode(self.unpack(event.input))
        context = frame.context()
        context.run(SAGA.set, saga)
        frame.task = RunTask(spec.fn(*args, **kwargs), loop=self.loop, context=context)
        frame.tasks.append(frame.task)
        frame.task.add_done_callback(lambda task: main_done(self, frame), context=context)
        if event.timeout_at is not None:
            self.timers.add(Timer(self, event.timeout_at, self._time_out, (frame,), context), event.run, DEADLINE)
        return frame

    def _on_step_succeeded(self, event: StepSucceeded) -> None:
        call = self.calls.get((event.run, event.call))
        if type(call) is not StepCall:
            raise unasked(self, event, f"step {event.call} succeeded")
        command = call.command
        if command.digest != event.digest:
            raise other_arguments(self, event, event.call)
        del self.calls[event.run, event.call]
        stored = event.result.v
        value = command.step.signature.result.decode(
            self.unpack(event.result) if stored is UNSET else stored, f"result of step {event.call}"
        )
        if not call.future.done():
            call.future.set_result(value)

    def _on_step_failed(self, event: StepFailed) -> None:
        call = self._find(event, event.run, event.call, StepCall, f"step {event.call} failed")
        self._check_digest(event, call.command.digest, event.digest, event.call)
        del self.calls[event.run, event.call]
        step = call.command.step
        error = exception_of(
            event.failure, registered=(*step.registered, *OWN_ERRORS), step=step.name, attempts=event.attempt
        )
        if not call.future.done():
            call.future.set_exception(error)

    def _on_attempt_failed(self, event: AttemptFailed) -> None:
        call = self._find(
            event, event.run, event.call, StepCall, f"attempt {event.attempt} of step {event.call} failed"
        )
        self._check_digest(event, call.command.digest, event.digest, event.call)
        call.command.attempt = event.attempt + 1
        call.command.not_before_at = event.retry_at
        self.commands.append(call.command)

    def _on_intended(self, event: StepIntended) -> None:
        call = self._find(event, event.run, event.call, StepCall, f"step {event.call} was about to begin")
        self._check_digest(event, call.command.digest, event.digest, event.call)
        call.command.intended = event.attempt
        if event.attempt:
            self.commands.append(call.command)

    def _on_progressed(self, event: StepProgressed) -> None:
        call = self._find(event, event.run, event.call, StepCall, f"step {event.call} saved progress")
        call.command.progress = bytes(self.unpack(event.progress))

    def _on_timer(self, event: TimerFired) -> None:
        timer = self.timers.take(event.run, event.call)
        if timer is None or timer.call is None:
            raise unasked(self, event, f"timer {event.call} fired")
        self.loop.call_soon(timer.call, *timer.args, context=timer.context)

    def _on_signal(self, event: SignalReceived) -> None:
        frame = self.frames.get(event.run)
        if frame is not None:
            frame.take_signal(event.payload, event.name)

    def _on_decided(self, event: ApprovalDecided) -> None:
        frame = self.frames.get(event.run)
        asking = None if frame is None else frame.approvals.get(event.approval)
        if frame is None or asking is None:
            return  # Nobody waits for it any more.
        decided = read_decision(self.unpack(event.payload), event.approval)
        if decided.nonce == self.nonce and not asking.future.done():
            del frame.approvals[event.approval]
            asking.future.set_result(decided)

    def _on_cancel(self, event: CancelRequested) -> None:
        frame = self.frames.get(event.run)
        if frame is not None:
            self.cancel_frame(frame, event.reason)

    def _on_detached_started(self, event: DetachedStarted) -> None:
        call = self._find(event, event.run, event.call, DetachedCall, f"detached run {event.run_id} was started")
        self._check_digest(event, call.command.digest, event.digest, event.call)
        if call.command.run_id != event.run_id:
            asked = f"asks for detached run {call.command.run_id}"
            raise contradiction(self, event, f"detached run {event.run_id} was started", asked)
        del self.calls[event.run, event.call]
        call.future.set_result(event.run_id)

    def _on_detached_ended(self, event: DetachedEnded) -> None:
        self.ended[event.run_id] = event
        for waiter in self.end_waiters.pop(event.run_id, ()):
            if not waiter.done():
                waiter.set_result(event)

    def _on_ended(self, event: Ending) -> None:
        frame = self.frames.get(event.run)
        status = STATUS[type(event)]
        told = f"run {event.run} ended as {status.value}"
        if frame is None or frame.ending is None:
            raise unasked(self, event, told)
        if frame.ending.status is not status:
            raise contradiction(self, event, told, f"run {event.run} ends as {frame.ending.status.value}")
        frame.ending = None
        frame.forget_tasks()
        del self.frames[event.run]
        call = self.children.pop(event.run, None)
        if call is not None:
            self.frames[call.command.parent].children -= 1
            del self.calls[call.command.parent, call.command.call]
            child_outcome(call, event, frame, self.unpack)
            if call.over is not None:
                call.over.set_result(None)

    # -- How runs end ----------------------------------------------------------------------------------------

    def cancel_frame(self, frame: Frame, reason: str) -> None:
        """Ask a run to stop; asking twice is asking once."""
        if frame.is_closing:
            overrule(frame, EndRun(frame.number, RunStatus.CANCELLED, reason=reason))
        elif frame.cancel_reason is None and frame.task is not None:
            frame.cancel_reason = reason
            frame.task.cancel()

    def cancel_child(self, call: ChildCall, reason: str) -> None:
        """Ask a child to stop, or to stop as soon as it exists."""
        call.is_cancelled = True
        if call.frame is not None:
            self.cancel_frame(call.frame, reason)

    def _time_out(self, frame: Frame) -> None:
        if frame.is_closing:
            overrule(frame, EndRun(frame.number, RunStatus.TIMED_OUT))
        elif frame.task is not None:
            frame.is_timed_out = True
            frame.task.cancel()

    def _check_not_stuck(self) -> None:
        place = None if self.end_waiters or self.is_parked else stuck_at(self.frames)
        if place is not None:
            raise StuckError(place)

    # -- Contradictions --------------------------------------------------------------------------------------

    def _find(self, event: AnyEvent, run: int, name: str, kind: type[CallT], told: str) -> CallT:
        call = self.calls.get((run, name))
        if not isinstance(call, kind):
            raise unasked(self, event, told)
        return call

    def _check_digest(self, event: AnyEvent, asked: int, recorded: int, name: str) -> None:
        if asked != recorded:
            raise other_arguments(self, event, name)


def as_asked(event: Recorded) -> Recorded:
    """The event as the run asked for it: without its time, and with the digest for the payload."""
    if hasattr(event, "payload"):
        return msgspec.structs.replace(event, at=0, payload=NO_PAYLOAD)
    return msgspec.structs.replace(event, at=0)


def _nothing(payload: Payload) -> Stored:
    raise RunDropped


_HANDLERS: dict[type, Callable[[Execution, Any], None] | None] = {
    RunCreated: Execution._on_created,
    StepSucceeded: Execution._on_step_succeeded,
    StepFailed: Execution._on_step_failed,
    AttemptFailed: Execution._on_attempt_failed,
    StepProgressed: Execution._on_progressed,
    TimerFired: Execution._on_timer,
    SignalReceived: Execution._on_signal,
    ApprovalDecided: Execution._on_decided,
    CancelRequested: Execution._on_cancel,
    DetachedStarted: Execution._on_detached_started,
    DetachedEnded: Execution._on_detached_ended,
    RunSucceeded: Execution._on_ended,
    RunFailed: Execution._on_ended,
    RunCancelled: Execution._on_ended,
    RunTimedOut: Execution._on_ended,
    RunContinued: Execution._on_ended,
    DetachedCancelled: Execution._on_recorded,
    ApprovalRequested: Execution._on_recorded,
    ApprovalEscalated: Execution._on_recorded,
    ApprovalClosed: Execution._on_recorded,
    RunPublished: Execution._on_published,
    PatchTaken: Execution._on_patched,
    StepIntended: Execution._on_intended,
    RunClaimed: None,
    RunSuspended: None,
    RunReleased: None,
    RunParked: None,
    RunResumed: None,
}
assert set(_HANDLERS) == set(get_args(AnyEvent)), "every event kind says what it does to an execution"
