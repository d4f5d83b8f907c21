"""What each event of the journal does to a tree of runs: it answers a call, fires a timer, hands over a signal.

An event that answers what the code did not ask for contradicts the code; the error says how. One that answers the same
call with other arguments does not: that is a difference (`RunTree.differ`), and what the journal has stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, get_args

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

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
    MessageSetAside,
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
    SnapshotTaken,
    StateLeft,
    StepDelayed,
    StepFailed,
    StepIntended,
    StepProgressed,
    StepSucceeded,
    TimerFired,
)
from outlive._journal.failure import OWN_ERRORS, exception_of
from outlive._model import child_id
from outlive._replay.asking import Received, read_decision
from outlive._replay.call import ChildCall, DetachedCall, RecordCall, SnapshotCall, StepCall
from outlive._replay.command import WorkflowSpec
from outlive._replay.divergence import contradiction, unasked
from outlive._replay.ending import DEADLINE, STATUS, child_outcome, main_done
from outlive._replay.frame import Frame
from outlive._replay.loop import RunTask, Timer
from outlive._replay.recorded import on_patched, on_published, on_recorded
from outlive._replay.saga import SAGA, Saga
from outlive._replay.snapshot import SNAPSHOT, give_signals, restore
from outlive._replay.tree import RunTree
from outlive.errors import UnreadableError

EARLIER_MAX = 10
"""Failed attempts that the error of the last one lists."""


def _on_created(tree: RunTree, event: RunCreated) -> None:
    if event.run == 0:
        _start(tree, event, _begin_root(tree, event))
        return
    call = tree.find(
        event, event.parent, event.call, ChildCall, f"child run {event.workflow} ({event.call}) was started"
    )
    if call.command.digest != event.digest:
        tree.differ(event, event.parent, event.call)
    if call.command.run != event.run or call.command.workflow.name != event.workflow:
        asked = f"asks for {call.command.workflow.name} as child run {call.command.run}"
        raise contradiction(tree, event, f"child run {event.run} is {event.workflow} ({event.call})", asked)
    call.frame = _start(tree, event, tree.resolve(event.workflow, event.version), call.saga)
    if call.is_cancelled:
        tree.cancel_frame(call.frame, "cancelled by its parent")


def _on_step_succeeded(tree: RunTree, event: StepSucceeded) -> None:
    call = tree.calls.get((event.run, event.call))
    if type(call) is not StepCall:
        raise unasked(tree, event, f"step {event.call} succeeded")
    command = call.command
    if command.digest != event.digest:
        tree.differ(event, event.run, event.call)
    del tree.calls[event.run, event.call]
    stored = event.result.v
    value = command.step.signature.result.decode(
        tree.unpack(event.result) if stored is UNSET else stored, f"result of step {event.call}"
    )
    if not call.future.done():
        call.future.set_result(value)


def _on_step_failed(tree: RunTree, event: StepFailed) -> None:
    call = tree.find(event, event.run, event.call, StepCall, f"step {event.call} failed")
    if call.command.digest != event.digest:
        tree.differ(event, event.run, event.call)
    del tree.calls[event.run, event.call]
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


def _on_attempt_failed(tree: RunTree, event: AttemptFailed) -> None:
    call = tree.find(event, event.run, event.call, StepCall, f"attempt {event.attempt} of step {event.call} failed")
    if call.command.digest != event.digest:
        tree.differ(event, event.run, event.call)
    call.earlier = [*call.earlier, f"  {event.attempt}: {event.failure.type}: {event.failure.message}"][-EARLIER_MAX:]
    call.command = replace(
        call.command, attempt=event.attempt + 1, not_before_at=event.retry_at, delayed_by="", has_turn=False
    )
    tree.commands.append(call.command)
    if call.given_up is not None and not call.given_up.done():
        call.given_up.set_result(None)


def _on_delayed(tree: RunTree, event: StepDelayed) -> None:
    call = tree.find(event, event.run, event.call, StepCall, f"step {event.call} has to wait for {event.by}")
    if call.command.digest != event.digest:
        tree.differ(event, event.run, event.call)
    call.command = replace(
        call.command, intended=0, not_before_at=event.until_at, delayed_by=event.by, has_turn=event.has_turn
    )
    tree.commands.append(call.command)


def _on_intended(tree: RunTree, event: StepIntended) -> None:
    call = tree.find(event, event.run, event.call, StepCall, f"step {event.call} was about to begin")
    if call.command.digest != event.digest:
        tree.differ(event, event.run, event.call)
    call.command = replace(call.command, intended=event.attempt)
    if event.attempt:
        tree.commands.append(call.command)


def _on_progressed(tree: RunTree, event: StepProgressed) -> None:
    call = tree.find(event, event.run, event.call, StepCall, f"step {event.call} saved progress")
    call.command = replace(call.command, progress=bytes(tree.unpack(event.progress)))


def _on_timer(tree: RunTree, event: TimerFired) -> None:
    timer = tree.timers.take(event.run, event.call)
    if timer is None or timer.call is None:
        raise unasked(tree, event, f"timer {event.call} fired")
    tree.loop.call_soon(timer.call, *timer.args, context=timer.context)


def _on_signal(tree: RunTree, event: SignalReceived) -> None:
    frame = tree.frames.get(event.run)
    if frame is not None:
        frame.take_signal(event.payload, event.name, str(tree.events))


def _on_decided(tree: RunTree, event: ApprovalDecided) -> None:
    frame = tree.frames.get(event.run)
    asking = None if frame is None else frame.approvals.get(event.approval)
    if frame is None or asking is None:
        return  # Nobody waits for it any more.
    decided = read_decision(tree.unpack(event.payload), event.approval)
    is_ours = isinstance(decided, UnreadableError) or decided.nonce == tree.nonce
    if is_ours and not asking.future.done():
        del frame.approvals[event.approval]
        asking.future.set_result((decided, Received(event.payload, str(tree.events))))


def _on_set_aside(tree: RunTree, event: MessageSetAside) -> None:
    if event.call:  # Else its row was damaged in the inbox, and the code has not seen it.
        tree.find(event, event.run, event.call, RecordCall, f"message {event.message} ({event.name}) was set aside")
        # Only the place counts: other code may put the reason in other words.
        del tree.calls[event.run, event.call]


def _on_cancel(tree: RunTree, event: CancelRequested) -> None:
    frame = tree.frames.get(event.run)
    if frame is not None:
        tree.cancel_frame(frame, event.reason)


def _on_detached_started(tree: RunTree, event: DetachedStarted) -> None:
    call = tree.find(event, event.run, event.call, DetachedCall, f"detached run {event.run_id} was started")
    if call.command.digest != event.digest or call.command.run_id != event.run_id:
        tree.differ(event, event.run, event.call)
    del tree.calls[event.run, event.call]
    call.future.set_result(event.run_id)


def _on_detached_ended(tree: RunTree, event: DetachedEnded) -> None:
    tree.ended[event.run_id] = event
    for waiter in tree.end_waiters.pop(event.run_id, ()):
        if not waiter.done():
            waiter.set_result(event)


def _on_ended(tree: RunTree, event: Ending) -> None:
    frame = tree.frames.get(event.run)
    status = STATUS[type(event)]
    told = f"run {event.run} ended as {status.value}"
    if frame is None or frame.ending is None:
        raise unasked(tree, event, told)
    if frame.ending.status is not status:
        raise contradiction(tree, event, told, f"run {event.run} ends as {frame.ending.status.value}")
    frame.ending = None
    frame.forget_tasks()
    del tree.frames[event.run]
    call = tree.children.pop(event.run, None)
    if call is not None:
        tree.frames[call.command.parent].children -= 1
        del tree.calls[call.command.parent, call.command.call]
        child_outcome(call, event, frame, tree.unpack)
        if call.over is not None:
            call.over.set_result(None)


def _on_snapshot(tree: RunTree, event: SnapshotTaken) -> None:
    tree.base = event.events
    tree.ended.clear()
    frame = tree.frames.get(0)
    if frame is not None:
        call = tree.calls.pop(SNAPSHOT, None)
        if not isinstance(call, SnapshotCall):
            raise unasked(tree, event, "a snapshot was taken")
        tree.loop.count_tasks_anew()
        give_signals(frame, event)  # As a replay does that begins here: each has its place in the snapshot now.
        call.future.set_result(None)
        return
    tree.events = event.events
    spec = _begin_root(tree, event.created)
    frame = _new_frame(tree, msgspec.structs.replace(event.created, published=event.published), spec)
    restore(frame, event, tree)
    _start_task(tree, frame, event.created.timeout_at, spec.fn())


def _begin_root(tree: RunTree, event: RunCreated) -> WorkflowSpec:
    tree.created = event
    tree.nonce = tree.loop.nonce = event.nonce
    tree.generation = event.generation
    spec = tree.resolve(event.workflow, event.version)
    tree.forgets = spec.forgets
    return spec


def _start(tree: RunTree, event: RunCreated, spec: WorkflowSpec, saga: Saga | None = None) -> Frame:
    frame = _new_frame(tree, event, spec)
    args, kwargs = spec.signature.decode(tree.unpack(event.input))
    _start_task(tree, frame, event.timeout_at, spec.fn(*args, **kwargs), saga)
    return frame


def _new_frame(tree: RunTree, event: RunCreated, spec: WorkflowSpec) -> Frame:
    frame = Frame(event.run, child_id(tree.root_id, event.run), spec, tree.nonce)
    frame.tags, frame.created_at = event.tags, event.at
    frame.parent_id = child_id(tree.root_id, event.parent) if event.run else event.notify or None
    if event.published is not None:
        frame.published = bytes(tree.unpack(event.published))
    tree.frames[event.run] = frame
    return frame


def _start_task(
    tree: RunTree,
    frame: Frame,
    timeout_at: int | None,
    coroutine: Coroutine[Any, Any, Any],
    saga: Saga | None = None,
) -> None:
    context = frame.context()
    context.run(SAGA.set, saga)
    frame.task = RunTask(coroutine, loop=tree.loop, context=context)
    frame.tasks.append(frame.task)
    frame.task.add_done_callback(lambda task: main_done(tree, frame), context=context)
    if timeout_at is not None:
        tree.timers.add(Timer(tree, timeout_at, tree.time_out, (frame,), context), frame.number, DEADLINE)


HANDLERS: dict[type, Callable[[RunTree, Any], None] | None] = {
    RunCreated: _on_created,
    StepSucceeded: _on_step_succeeded,
    StepFailed: _on_step_failed,
    AttemptFailed: _on_attempt_failed,
    StepDelayed: _on_delayed,
    StepProgressed: _on_progressed,
    TimerFired: _on_timer,
    SignalReceived: _on_signal,
    ApprovalDecided: _on_decided,
    CancelRequested: _on_cancel,
    DetachedStarted: _on_detached_started,
    DetachedEnded: _on_detached_ended,
    RunSucceeded: _on_ended,
    RunFailed: _on_ended,
    RunCancelled: _on_ended,
    RunTimedOut: _on_ended,
    RunContinued: _on_ended,
    DetachedCancelled: on_recorded,
    ApprovalRequested: on_recorded,
    ApprovalEscalated: on_recorded,
    ApprovalClosed: on_recorded,
    MessageSetAside: _on_set_aside,
    RunPublished: on_published,
    PatchTaken: on_patched,
    StateLeft: on_recorded,
    SnapshotTaken: _on_snapshot,
    StepIntended: _on_intended,
    RunClaimed: None,
    RunSuspended: None,
    RunReleased: None,
    RunParked: None,
    RunResumed: None,
}
assert set(HANDLERS) == set(get_args(AnyEvent)), "every event kind says what it does to an execution"
