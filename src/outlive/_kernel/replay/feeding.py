"""Events in, commands out: `feed` is the only way in which anything reaches workflow code.

Live execution is replay: the worker makes every outcome an event and feeds it here; recovery feeds the same events from
the store. So what works live cannot break on recovery.

Feeding an event answers one durable call (or fires a timer, or hands over a signal), moves the run's clock to the time
of the event, and runs the loop until nothing is ready. What the workflow asked for meanwhile comes back as commands. An
event that answers a call the code did not make contradicts the code: the execution stops with a `Park` command that
carries a readable diff, and is of no use after that. Arguments are not identity: a call that the code makes with other
arguments than the journal has is noted (`Execution.differ`), and what the journal has counts.
"""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, get_args

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from outlive._kernel.journal import event as journal
from outlive._kernel.journal.event import AnyEvent, Ending
from outlive._kernel.journal.failure import OWN_ERRORS, exception_of, failure_of, text_of
from outlive._kernel.journal.fold import STATUS
from outlive._kernel.journal.value import StructCodec
from outlive._kernel.model import child_id
from outlive._kernel.model.payload import NO_PAYLOAD
from outlive._kernel.model.wait import DEADLINE
from outlive._kernel.replay.call import ChildCall, DetachedCall, RecordCall, SnapshotCall, StepCall
from outlive._kernel.replay.command import Command, Park, Recorded, WorkflowSpec
from outlive._kernel.replay.ending import child_outcome, end_closed, main_done
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import PATCH, SCOPE, Frame, Received, read_decision
from outlive._kernel.replay.loop import RunTask
from outlive._kernel.replay.saga import SAGA, Saga
from outlive._kernel.replay.snapshot import SNAPSHOT, give_signals, restore
from outlive._kernel.replay.timers import Timer
from outlive.errors import UnreadableError
from outlive.errors.program import DivergenceError, RunawayError, StuckError, WorkflowNotFoundError
from outlive.telemetry import log, run_fields

EARLIER_MAX = 10
"""Failed attempts that the error of the last one lists."""


def feed(execution: Execution, event: AnyEvent) -> list[Command]:
    """Take the next event of the journal; what the run asks for because of it."""
    handle = _HANDLERS[type(event)]
    if handle is not None and not execution.is_parked:
        loop = execution.loop
        try:
            if event.at > loop.now_at:
                loop.now_at = event.at
            handle(execution, event)
            loop.drain()
            if loop.failed:
                _report(execution, loop.take_unseen())
            if execution.closing:
                end_closed(execution)
            # Every child that runs is also a call of its parent: no other call is open.
            if len(execution.calls) < len(execution.frames) and not execution.timers.by_run:
                _check_not_stuck(execution)
        except (DivergenceError, UnreadableError, RunawayError, StuckError, WorkflowNotFoundError) as error:
            execution.park(error, event.run)
    elif handle is None:
        for deadline in execution.undo_deadlines:
            deadline.follow(event)
    execution.events += 1
    commands, execution.commands = execution.commands, []
    return [command for command in commands if isinstance(command, Park)] if execution.is_parked else commands


def feed_again(execution: Execution, event: AnyEvent) -> list[Command]:
    """Take the next event of a journal that is replayed: as `feed`, but what a retry has taken back is passed over."""
    next_number = execution.ahead.undone.get(execution.events)
    if next_number is None or not execution.events:
        return feed(execution, event)
    # Children that were taken back keep their numbers.
    execution.next_number = max(execution.next_number, next_number)
    execution.events += 1
    return []


def _report(execution: Execution, failed: Iterable[asyncio.Task[Any]]) -> None:
    """Log at once that background tasks have failed: if the workflow never looks at them, nothing else would."""
    for task in failed:
        error = task.exception()  # Looked at: asyncio need not complain when the task is collected.
        if error is None or execution.is_replaying or not isinstance(task, RunTask):
            continue
        frame = task.home[SCOPE].frame
        text = "a background task of run %s failed, and nothing waits for it:\n%s"
        log.warning(text, frame.id, text_of(failure_of(error)), extra=run_fields(frame.id, frame.spec.name))


def _check_not_stuck(execution: Execution) -> None:
    """Refuse a tree without calls and timers, unless the world or the journal can still move it."""
    frames = execution.frames
    if execution.end_waits or execution.is_parked or not frames:
        return
    for frame in frames.values():
        if frame.ending is not None or frame.awaited_signals() or frame.approvals or frame.awaited_asks():
            return
    # A parent hangs in its child.
    frame = [frame for frame in frames.values() if not frame.children][-1]
    task = next((task for task in frame.tasks if not task.done()), None)
    stack: list[types.FrameType] = task.get_stack() if task is not None else []
    if not stack:
        raise StuckError(frame.spec.name)
    code = stack[-1].f_code
    raise StuckError(f"{code.co_filename}:{stack[-1].f_lineno} in {code.co_name}")


def _on_created(execution: Execution, event: journal.RunCreated) -> None:
    if event.run == 0:
        execution.events = execution.base = event.before
        # Time in line, a delay or a missing worker spend nothing of its waits.
        execution.loop.now_at = max(execution.loop.now_at, execution.ahead.begun_at)
        if event.timeout is not None and not event.generation:
            event = replace(event, timeout_at=execution.loop.now_at + event.timeout)
        _start(execution, event, _begin_root(execution, event))
        return
    call = execution.find(
        event, event.parent, event.call, ChildCall, f"child run {event.workflow} ({event.call}) was started"
    )
    if call.command.digest != event.digest:
        execution.differ(event, event.parent, event.call)
    if call.command.run != event.run or call.command.workflow.name != event.workflow:
        asked = f"asks for {call.command.workflow.name} as child run {call.command.run}"
        raise execution.contradiction(event, f"child run {event.run} is {event.workflow} ({event.call})", asked)
    call.frame = _start(execution, event, execution.resolve(event.workflow, event.version), saga=call.saga)
    if call.is_cancelled:
        execution.cancel_frame(call.frame, "cancelled by its parent")


def _on_step_succeeded(execution: Execution, event: journal.StepSucceeded) -> None:
    call = execution.calls.get((event.run, event.call))
    if type(call) is not StepCall:
        execution.refuse_unasked(event, f"step {event.call} succeeded")
    command = call.command
    if command.digest != event.digest:
        execution.differ(event, event.run, event.call)
    del execution.calls[event.run, event.call]
    stored = event.result.v
    value = command.step.signature.result.decode(
        execution.unpack(event.result) if stored is UNSET or execution.refuses_plain else stored,
        f"result of step {event.call}",
    )
    if not call.future.done():
        call.future.set_result(value)


def _find_step(
    execution: Execution,
    event: journal.StepFailed | journal.AttemptFailed | journal.StepDelayed | journal.StepIntended,
    says: str,
) -> StepCall:
    call = execution.find(event, event.run, event.call, StepCall, says)
    if call.command.digest != event.digest:
        execution.differ(event, event.run, event.call)
    return call


def _on_step_failed(execution: Execution, event: journal.StepFailed) -> None:
    call = _find_step(execution, event, f"step {event.call} failed")
    del execution.calls[event.run, event.call]
    step = call.command.step
    error = exception_of(
        event.failure, registered=(*step.registered, *OWN_ERRORS), step=step.name, attempts=event.attempt
    )
    if call.earlier:
        more = event.attempt - 1 - len(call.earlier)
        left_out = [f"  ({more} before these)"] if more > 0 else []
        error.add_note("\n".join(["earlier attempts failed too:", *left_out, *call.earlier]))
    if not call.future.done():
        call.future.set_exception(error)


def _on_attempt_failed(execution: Execution, event: journal.AttemptFailed) -> None:
    call = _find_step(execution, event, f"attempt {event.attempt} of step {event.call} failed")
    call.earlier = [*call.earlier, f"  {event.attempt}: {event.failure.type}: {event.failure.message}"][-EARLIER_MAX:]
    call.command = replace(
        call.command,
        attempt=event.attempt + 1,
        first_at=call.command.first_at or event.first_at or event.at,
        not_before_at=event.retry_at,
        delayed_by="",
        has_turn=False,
    )
    execution.commands.append(call.command)
    if call.attempt_failed is not None and not call.attempt_failed.done():
        call.attempt_failed.set_result(None)


def _on_delayed(execution: Execution, event: journal.StepDelayed) -> None:
    call = _find_step(execution, event, f"step {event.call} has to wait for {event.by}")
    call.command = replace(
        call.command, intended=0, not_before_at=event.until_at, delayed_by=event.by, has_turn=event.has_turn
    )
    execution.commands.append(call.command)


def _on_intended(execution: Execution, event: journal.StepIntended) -> None:
    call = _find_step(execution, event, f"step {event.call} was about to begin")
    call.command = replace(call.command, intended=event.attempt)
    if event.attempt:
        execution.commands.append(call.command)


def _on_progressed(execution: Execution, event: journal.StepProgressed) -> None:
    call = execution.find(event, event.run, event.call, StepCall, f"step {event.call} saved progress")
    call.command = replace(call.command, progress=bytes(execution.unpack(event.progress)))


def _on_timer(execution: Execution, event: journal.TimerFired) -> None:
    timer = execution.timers.take(event.run, event.call)
    if timer is None or timer.call is None:
        execution.refuse_unasked(event, f"timer {event.call} fired")
    execution.loop.call_soon(timer.call, *timer.args, context=timer.context)


def _on_signal(execution: Execution, event: journal.SignalReceived) -> None:
    frame = execution.frames.get(event.run)
    if frame is not None:
        frame.receive_signal(event.payload, event.name, str(execution.events))


def _on_ask(execution: Execution, event: journal.AskReceived) -> None:
    frame = execution.frames.get(event.run)
    if frame is not None:
        frame.asks_of(event.name).receive(event)


def _on_answered(execution: Execution, event: journal.AskAnswered) -> None:
    call = execution.find(event, event.run, event.call, RecordCall, f"ask {event.name} ({event.key}) was answered")
    asked = call.command.fact
    assert isinstance(asked, journal.AskAnswered)
    # A failure is compared by what it says: its traceback has the line numbers of its time.
    if asked.digest != event.digest:
        execution.differ(event, event.run, event.call)
    del execution.calls[event.run, event.call]


def _on_decided(execution: Execution, event: journal.ApprovalDecided) -> None:
    frame = execution.frames.get(event.run)
    asked = None if frame is None else frame.approvals.get(event.approval)
    if frame is None or asked is None:
        return  # The run no longer waits for it.
    decided = read_decision(execution.unpack(event.payload), event.approval)
    is_ours = isinstance(decided, UnreadableError) or decided.nonce == execution.nonce
    if is_ours and not asked.future.done():
        del frame.approvals[event.approval]
        asked.future.set_result((decided, Received(event.payload, str(execution.events))))


def _on_set_aside(execution: Execution, event: journal.MessageSetAside) -> None:
    if event.call:  # Else its row was damaged in the inbox, and the code has not seen it.
        execution.find(
            event, event.run, event.call, RecordCall, f"message {event.message} ({event.name}) was set aside"
        )
        # Only the place counts: other code may put the reason in other words.
        del execution.calls[event.run, event.call]


def _on_recorded(execution: Execution, event: Recorded) -> None:
    """A fact that the run decided by itself is in the journal."""
    recorded = f"{type(event).__name__} {event.call}"
    call = execution.find(event, event.run, event.call, RecordCall, recorded)
    if _as_asked(event) != call.command.fact:
        execution.differ(event, event.run, event.call)
        _keep_recorded(execution, event, call)
    del execution.calls[event.run, event.call]


def _keep_recorded(execution: Execution, event: Recorded, call: RecordCall) -> None:
    """The code would record something else now: what happened stays as the journal has it."""
    frame = execution.frames[event.run]
    match event:
        case journal.RunTagged():
            frame.tags = event.tags
        case journal.RunPublished():
            frame.published = bytes(execution.unpack(event.payload))
        case journal.ApprovalRequested() if (asking := frame.approvals.get(event.call)) is not None:
            asking.assignees = _ASKED.decode(execution.unpack(event.payload), event.call).assignees
        case journal.ApprovalEscalated() if (asking := frame.approvals.get(event.approval)) is not None:
            asking.assignees = _PEOPLE.decode(execution.unpack(event.payload), event.call)
        case journal.StateLeft():
            went = _LEFT.decode(execution.unpack(event.payload), event.call).to
            goes = _LEFT.decode(call.command.data or b"{}", event.call).to
            if went != goes:
                raise execution.contradiction(event, f"{event.call} was left for {went}", f"goes to {goes}")
        case _:
            """It has no content but its name, or its approval is no longer waited for."""


class _Left(msgspec.Struct):
    """The part of the payload of `StateLeft` that says where the workflow goes."""

    to: str = ""


class _Asked(msgspec.Struct):
    """The part of the payload of `ApprovalRequested` that names the people who are asked."""

    assignees: tuple[str, ...] = ()


_LEFT, _ASKED, _PEOPLE = (StructCodec(kind, "what a run recorded") for kind in (_Left, _Asked, tuple[str, ...]))


def _on_published(execution: Execution, event: journal.RunPublished) -> None:
    """The run, or a step of it, has shown something to people."""
    frame = execution.frames.get(event.run)
    if event.call and (frame is None or (event.run, event.call) in execution.calls):
        _on_recorded(execution, event)
    elif frame is not None:
        if event.call:
            # The code has nothing new to publish here now. That changes nothing in what it does.
            execution.differ(event, event.run, event.call)
        frame.published = bytes(execution.unpack(event.payload))


def _on_tagged(execution: Execution, event: journal.RunTagged) -> None:
    """The run has given itself other tags."""
    frame = execution.frames.get(event.run)
    if frame is None or (event.run, event.call) in execution.calls:
        _on_recorded(execution, event)
    else:
        # The code sets no other tags here now. They are for people, and decide nothing.
        execution.differ(event, event.run, event.call)
        frame.tags = event.tags


def _on_changed(execution: Execution, event: journal.RunChanged) -> None:
    """A person has changed the run from outside."""
    frame = execution.frames.get(event.run)
    if frame is None:
        return
    if event.tags is not None:
        frame.tags = event.tags
    if event.moves_deadline and not frame.is_timed_out:
        _move_deadline(execution, frame, event.timeout_at)


def _on_patched(execution: Execution, event: journal.PatchTaken) -> None:
    """The run has taken the new way at a mark."""
    frame = execution.frames.get(event.run)
    is_asked = execution.calls.pop((event.run, event.call), None) is not None
    if frame is None:
        return
    frame.patches[event.call] = True
    if not is_asked:
        # Either this code is older than the change, or it has only the new way left and waits for the same things.
        execution.unasked_marks[event.run, event.call] = None
        if event.asked not in (0, execution.asked_by(frame)):
            execution.refuse_unasked(event, f"the change {event.call.removeprefix(PATCH)!r} was taken")


def _as_asked(event: Recorded) -> Recorded:
    """The event as the run asked for it: without its time, and with the digest for the payload."""
    if isinstance(event, journal.ApprovalRequested | journal.ApprovalEscalated):
        return msgspec.structs.replace(event, at=0, payload=NO_PAYLOAD, assignees=None)
    if hasattr(event, "payload"):
        return msgspec.structs.replace(event, at=0, payload=NO_PAYLOAD)
    return msgspec.structs.replace(event, at=0)


def _on_cancel(execution: Execution, event: journal.CancelRequested) -> None:
    frame = execution.frames.get(event.run)
    if frame is not None:
        execution.cancel_frame(frame, event.reason)


def _on_detached_started(execution: Execution, event: journal.DetachedStarted) -> None:
    call = execution.find(event, event.run, event.call, DetachedCall, f"detached run {event.run_id} was started")
    # A fork has the id that its origin gave.
    is_other = call.command.run_id != event.run_id and execution.seed == execution.nonce
    if call.command.digest != event.digest or is_other:
        execution.differ(event, event.run, event.call)
    del execution.calls[event.run, event.call]
    call.future.set_result(event.run_id)


def _on_detached_ended(execution: Execution, event: journal.DetachedEnded) -> None:
    execution.ended[event.run_id] = event
    wait = execution.end_waits.pop(event.run_id, None)
    for waiter in () if wait is None else wait.waiters:
        if not waiter.done():
            waiter.set_result(event)


def _on_ended(execution: Execution, event: Ending) -> None:
    frame = execution.frames.get(event.run)
    status = STATUS[type(event)]
    says = f"run {event.run} ended as {status.value}"
    if frame is None or frame.ending is None:
        execution.refuse_unasked(event, says)
    if frame.ending.status is not status:
        raise execution.contradiction(event, says, f"run {event.run} ends as {frame.ending.status.value}")
    frame.ending = None
    frame.forget_tasks()
    del execution.frames[event.run]
    call = execution.children.pop(event.run, None)
    if call is not None:
        execution.frames[call.command.parent].children -= 1
        del execution.calls[call.command.parent, call.command.call]
        child_outcome(call, event, frame, execution.unpack)
        if call.over is not None:
            call.over.set_result(None)


def _on_retried(execution: Execution, event: journal.RunRetried) -> None:
    """The run goes on: it has a new deadline, and its timers are as far away as they were when it ended."""
    if event.run == 0:
        execution.retried = execution.events
        _rest(execution, event)
    _renew_deadline(execution, event)


def _on_forked(execution: Execution, event: journal.RunForked) -> None:
    """From here on it is another run than the one whose history it has: with random numbers of its own, and without
    what the other one was asked."""
    _rest(execution, event)
    execution.seed = event.seed
    for frame in execution.frames.values():
        frame.nonce = event.seed
        for queue in frame.asks.values():
            queue.leave_to_origin()
        for scope in [frame.scope, *(task.home[SCOPE] for task in frame.tasks if isinstance(task, RunTask))]:
            scope.seed_again()
    if execution.created is not None:
        execution.created = replace(execution.created, seed=event.seed)
    _renew_deadline(execution, event)


def _rest(execution: Execution, event: journal.RunRetried | journal.RunForked) -> None:
    """The tree has rested since the last event before this one: its timers stood still. If it rested until a worker
    claimed it, its clock goes on there."""
    rest, time = execution.ahead.rests.get(execution.events), event.rested
    if rest is not None:
        execution.loop.now_at = max(execution.loop.now_at, rest.claimed_at)
        time = max(0, rest.claimed_at - event.at + event.rested) if rest.puts_off else 0
    execution.timers.put_off(time)
    for deadline in execution.undo_deadlines:
        deadline.renew(execution.loop.now_at)
    for asking in [asking for frame in execution.frames.values() for asking in frame.approvals.values()]:
        if asking.deadline_at is not None:
            asking.deadline_at += time


def _renew_deadline(execution: Execution, event: journal.RunRetried | journal.RunForked) -> None:
    frame, timeout_at = execution.frames.get(event.run), event.timeout_at
    rest = execution.ahead.rests.get(execution.events)
    if event.timeout is not None and rest is not None:
        timeout_at = rest.claimed_at + event.timeout
    if frame is not None:
        _move_deadline(execution, frame, timeout_at)


def _move_deadline(execution: Execution, frame: Frame, timeout_at: int | None) -> None:
    if frame.number == 0 and execution.created is not None:
        execution.created = replace(execution.created, timeout_at=timeout_at)
    execution.timers.take(frame.number, DEADLINE)
    if isinstance(frame.task, RunTask) and timeout_at is not None:
        _set_deadline(execution, frame, timeout_at, frame.task.home)


def _on_snapshot(execution: Execution, event: journal.SnapshotTaken) -> None:
    execution.base = event.events
    execution.ended.clear()
    frame = execution.frames.get(0)
    if frame is not None:
        call = execution.calls.pop(SNAPSHOT, None)
        if not isinstance(call, SnapshotCall):
            execution.refuse_unasked(event, "a snapshot was taken")
        execution.loop.tasks_made = 1  # A loop that begins with the one task that is left counts the same.
        give_signals(frame, event)  # A replay that begins here does so too: each has its place in the snapshot now.
        call.future.set_result(None)
        return
    execution.events = event.events
    execution.retried = event.retried
    spec = _begin_root(execution, event.created)
    created = msgspec.structs.replace(event.created, published=event.published)
    restore(_start(execution, created, spec, spec.fn), event, execution)


def _begin_root(execution: Execution, event: journal.RunCreated) -> WorkflowSpec:
    execution.created, execution.headers = event, event.headers
    execution.nonce = event.nonce
    execution.seed = execution.loop.nonce = event.seed or event.nonce
    execution.generation = event.generation
    execution.spends_names = event.spends_names
    spec = execution.resolve(event.workflow, event.version)
    execution.forgets = spec.forgets
    return spec


def _start(
    execution: Execution,
    event: journal.RunCreated,
    spec: WorkflowSpec,
    begin: Callable[[], Coroutine[Any, Any, Any]] | None = None,
    saga: Saga | None = None,
) -> Frame:
    """A run begins: its code runs when the loop is drained. It begins with its arguments, or by `begin`."""
    run_id = child_id(execution.root_id, event.run) if event.run else execution.root_id
    frame = execution.frames[event.run] = Frame(event.run, run_id, spec, execution.seed)
    frame.tags, frame.created_at = event.tags, event.at
    frame.parent_id = child_id(execution.root_id, event.parent) if event.run else event.notify or None
    if event.published is not None:
        frame.published = bytes(execution.unpack(event.published))
    if begin is None:
        stored = event.input.v
        args, kwargs = spec.signature.decode(
            execution.unpack(event.input) if stored is UNSET or execution.refuses_plain else stored
        )
        begin = partial(spec.fn, *args, **kwargs)
    coroutine = begin() if execution.around is None else execution.around(begin)
    # A fresh context: nothing of the worker leaks in, nothing of the run leaks out.
    context = contextvars.Context()
    context.run(SCOPE.set, frame.scope)
    if saga is not None:
        context.run(SAGA.set, saga)
    frame.task = RunTask(coroutine, loop=execution.loop, context=context)
    frame.tasks.append(frame.task)
    frame.task.add_done_callback(lambda task: main_done(execution, frame), context=context)
    if event.timeout_at is not None:
        _set_deadline(execution, frame, event.timeout_at, context)
    return frame


def _set_deadline(execution: Execution, frame: Frame, timeout_at: int, context: contextvars.Context) -> None:
    timer = Timer(execution.timers, timeout_at, execution.time_out, (frame,), context)
    execution.timers.add(timer, frame.number, DEADLINE)


_HANDLERS: dict[type, Callable[[Execution, Any], None] | None] = {
    journal.RunCreated: _on_created,
    journal.StepSucceeded: _on_step_succeeded,
    journal.StepFailed: _on_step_failed,
    journal.AttemptFailed: _on_attempt_failed,
    journal.StepDelayed: _on_delayed,
    journal.StepProgressed: _on_progressed,
    journal.TimerFired: _on_timer,
    journal.SignalReceived: _on_signal,
    journal.AskReceived: _on_ask,
    journal.AskAnswered: _on_answered,
    journal.ApprovalDecided: _on_decided,
    journal.CancelRequested: _on_cancel,
    journal.DetachedStarted: _on_detached_started,
    journal.DetachedEnded: _on_detached_ended,
    journal.RunSucceeded: _on_ended,
    journal.RunFailed: _on_ended,
    journal.RunCancelled: _on_ended,
    journal.RunTimedOut: _on_ended,
    journal.RunContinued: _on_ended,
    journal.DetachedCancelled: _on_recorded,
    journal.ApprovalRequested: _on_recorded,
    journal.ApprovalEscalated: _on_recorded,
    journal.ApprovalClosed: _on_recorded,
    journal.MessageSetAside: _on_set_aside,
    journal.PromiseMade: _on_recorded,
    journal.RunPublished: _on_published,
    journal.RunChanged: _on_changed,
    journal.RunTagged: _on_tagged,
    journal.PatchTaken: _on_patched,
    journal.StateLeft: _on_recorded,
    journal.SnapshotTaken: _on_snapshot,
    journal.StepIntended: _on_intended,
    journal.StepEndedLate: None,
    journal.RunClaimed: None,
    journal.RunSuspended: None,
    journal.RunReleased: None,
    journal.RunParked: None,
    journal.RunResumed: None,
    journal.RunRetried: _on_retried,
    journal.RunForked: _on_forked,
}
assert set(_HANDLERS) == set(get_args(AnyEvent)), "every event kind says what it does to an execution"
