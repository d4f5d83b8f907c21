"""How a message or a command of a run becomes an event: plain translations, one for each kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

import msgspec

from outlive._kernel.client.message_key import key_of_end, key_of_watch, sender_key
from outlive._kernel.journal.event import (
    AnyEvent,
    ApprovalDecided,
    AskReceived,
    AttemptFailed,
    CancelRequested,
    DetachedEnded,
    Ending,
    MessageSetAside,
    RunCancelled,
    RunClaimed,
    RunContinued,
    RunCreated,
    RunFailed,
    RunParked,
    RunReleased,
    RunResumed,
    RunRetried,
    RunSucceeded,
    RunTimedOut,
    SignalReceived,
    StepFailed,
    StepSucceeded,
)
from outlive._kernel.journal.failure import failure_of, storable
from outlive._kernel.journal.fold import STATUS
from outlive._kernel.journal.recorded import recorded
from outlive._kernel.journal.redaction import Redaction
from outlive._kernel.model import Payload, Run, RunStatus
from outlive._kernel.model.payload import NO_PAYLOAD
from outlive._kernel.model.under_way import Interrupted
from outlive._kernel.replay.command import AwaitEnd, EndRun, RecordFact, RunStep, StartChild
from outlive._kernel.store.change import ended_of
from outlive._kernel.store.contract import Ended, InboxMessage, Message, MessageKind, Watch
from outlive.errors import OutliveError, RunExistsError, RunNotFoundError
from outlive.errors.run import ChildRunError, RunContinuedError

_PLAIN = (MessageKind.CANCEL, MessageKind.RESUME, MessageKind.SKIP, MessageKind.PAUSE)
"""Messages that need nothing from a damaged row but their kind."""


def event_of_message(message: InboxMessage, *, at: int) -> AnyEvent:
    """The event of a message of the inbox."""
    if message.fault and message.kind not in _PLAIN:
        return _event_of_damage(message, at=at)
    match message.kind:
        case MessageKind.SIGNAL:
            assert message.payload is not None
            key = sender_key(message.key, message.name)
            return SignalReceived(at=at, run=message.run, name=message.name, payload=message.payload, key=key)
        case MessageKind.ASK:
            assert message.payload is not None
            key = sender_key(message.key, message.name)
            return AskReceived(at=at, run=message.run, name=message.name, payload=message.payload, key=key)
        case MessageKind.CANCEL:
            return CancelRequested(at=at, run=message.run, reason=message.name)
        case MessageKind.RESUME | MessageKind.SKIP | MessageKind.PAUSE:
            # A request to skip a step that comes here came too late: the run had gone on. See `skipping`. And a pause
            # that comes here was taken back: see `holding`.
            return RunResumed(at=at)
        case MessageKind.CHANGE:
            raise AssertionError("it needs the row of the run")  # See `LiveTree.take_message`.
        case MessageKind.ENDED:
            ended = message.ended
            assert ended is not None
            return DetachedEnded(at=at, **msgspec.structs.asdict(ended))
        case MessageKind.DECISION:
            assert message.payload is not None
            return ApprovalDecided(at=at, run=message.run, approval=message.name, payload=message.payload)
        case _:
            assert_never(message.kind)


def _event_of_damage(message: InboxMessage, *, at: int) -> AnyEvent:
    """The event that sets a message with a damaged row aside, so that it does not block those behind it."""
    if message.kind is MessageKind.DECISION:
        # A decision that cannot be read, so that the run asks again: the store accepts one decision for each request.
        return ApprovalDecided(at=at, run=message.run, approval=message.name, payload=NO_PAYLOAD)
    reason = f"its row in the inbox is damaged: {message.fault}"
    return MessageSetAside(
        at=at, run=message.run, call="", name=message.name, message=f"inbox/{message.id}", reason=storable(reason)
    )


def is_new(events: Sequence[AnyEvent]) -> bool:
    """Whether a claimed run has never been in motion: its journal has only its creation and the claim."""
    created = events[0] if len(events) == 2 else None
    return isinstance(created, RunCreated) and not created.worker


def resumed_by(events: Sequence[AnyEvent], *, has_skip_request: bool) -> str:
    """The resumer of a claimed run: "worker" if it was taken over, "person" if one wants a step skipped, empty if it
    was only suspended. (The request of a person to resume it is an event of its own.)"""
    before, claim = events[-2:] if len(events) > 1 else (None, None)
    if isinstance(before, RunRetried):
        return "person"
    if isinstance(before, RunReleased) or (isinstance(claim, RunClaimed) and claim.interrupted):
        return "worker"
    return "person" if isinstance(before, RunParked) and has_skip_request else ""


def with_arguments(
    event: AnyEvent, command: RunStep, *, hidden: Redaction, pack: Callable[[bytes, str], Payload]
) -> AnyEvent:
    """The outcome of an attempt with the arguments that it was called with, for people."""
    if not isinstance(event, StepSucceeded | StepFailed | AttemptFailed):
        return event
    try:
        data = recorded(command.arguments_for_people(), hidden)
        return msgspec.structs.replace(event, arguments=pack(data, f"the arguments of step {command.call}"))
    except Exception:  # A codec raises, or the code that shows them: the outcome matters more.
        return event


def event_of_child(command: StartChild, *, at: int, arguments: Payload) -> RunCreated:
    """A child run begins."""
    return RunCreated(
        at=at,
        run=command.run,
        workflow=command.workflow.name,
        version=command.workflow.version,
        input=arguments,
        call=command.call,
        parent=command.parent,
        digest=command.digest,
        timeout_at=command.timeout_at,
    )


def event_of_record(command: RecordFact, *, at: int, payload: Payload | None) -> AnyEvent:
    """Something that the run decided by itself."""
    changes: dict[str, object] = {"at": at}
    if payload is not None:
        changes["payload"] = payload
    return msgspec.structs.replace(command.fact, **changes)


def event_of_end(
    command: EndRun, *, at: int, result: Payload | None, interrupted: tuple[Interrupted, ...] = (), follows: int = 0
) -> Ending:
    """A run has ended; `interrupted` are the steps that were under way when it was asked to stop, `follows` is the
    digest of the journal before."""
    if command.status is RunStatus.SUCCEEDED:
        assert result is not None
        return RunSucceeded(at=at, run=command.run, result=result, follows=follows)
    if command.status is RunStatus.FAILED:
        assert command.failure is not None
        return RunFailed(at=at, run=command.run, failure=command.failure, follows=follows)
    if command.status is RunStatus.CANCELLED:
        return RunCancelled(at=at, run=command.run, reason=command.reason, interrupted=interrupted)
    if command.status is RunStatus.CONTINUED:
        assert command.successor is not None
        follower = command.successor.workflow
        return RunContinued(at=at, run=command.run, workflow=follower.name, version=follower.version, follows=follows)
    assert command.status is RunStatus.TIMED_OUT
    return RunTimedOut(at=at, run=command.run, interrupted=interrupted)


def message_to_starter(root: Run, event: Ending, *, retried: int = 0) -> Message | None:
    """The message about the end of this tree to the run that started it detached, if there is one."""
    if root.parent_id is None or isinstance(event, RunContinued):
        # The starter waits for the last generation.
        return None
    ended = Ended(
        run_id=root.id,
        status=STATUS[type(event)],
        result=event.result if isinstance(event, RunSucceeded) else None,
        failure=event.failure if isinstance(event, RunFailed) else None,
        # The starter may also ask for the end by the id alone, and then does not know the type of the result.
        workflow=root.workflow,
        version=root.version,
    )
    return _end_message(root.parent_id, ended, at=event.at, key=key_of_end(root.id, root.nonce, retried=retried))


def is_own(wait: AwaitEnd, run: Run | None, waiting_id: str) -> bool:
    """Whether the tree that waits has started this run itself, so that the run will send its end."""
    return run is not None and bool(wait.started) and run.number == 0 and run.parent_id == waiting_id


def watch_of(wait: AwaitEnd, run: Run | None, waiting: Run, *, retried: int) -> Watch | None:
    """The watch that a wait needs; None if the run has ended, sends its end itself, or cannot be waited for."""
    if run is None or run.status.is_terminal or is_own(wait, run, waiting.id) or _refusal(wait, run) is not None:
        return None
    return Watch(
        run_id=run.id, watcher=waiting.id, key=key_of_watch(run.id, waiting.nonce, wait.asked, retried=retried)
    )


def unsent_end(
    wait: AwaitEnd, run: Run | None, waiting: Run, *, generation: int, base: int, retried: int, at: int
) -> Message | None:
    """The message that ends a wait at once: the run has ended, or cannot be waited for."""
    if (error := _refusal(wait, run)) is not None:
        ended = Ended(wait.run_id, RunStatus.FAILED, failure=failure_of(error), is_refusal=True)
    elif run is None or not run.status.is_terminal:
        return None
    else:
        ended = ended_of(run)
    if run is not None and is_own(wait, run, waiting.id):
        # The key of the message that the run has sent, if it has sent one.
        key = key_of_end(run.id, run.nonce, generation=generation, forgotten=max(base, retried))
    else:
        key = key_of_watch(wait.run_id, waiting.nonce, wait.asked, retried=retried)
    return _end_message(waiting.id, ended, at=at, key=key)


def _refusal(wait: AwaitEnd, run: Run | None) -> OutliveError | None:
    """Why there is no end of this run to wait for."""
    if run is None:
        return RunNotFoundError(wait.run_id)
    if run.status is RunStatus.CONTINUED:
        return RunContinuedError(run.id)
    if run.number and not run.status.is_terminal:
        return ChildRunError(run.id, run.root_id)
    if wait.started and run.workflow != wait.started:
        return RunExistsError(run.id, run.status.value, f"it is a run of {run.workflow}; use another id")
    return None


def _end_message(starter_id: str, ended: Ended, *, at: int, key: str) -> Message:
    return Message(run_id=starter_id, kind=MessageKind.ENDED, at=at, key=key, ended=ended)
