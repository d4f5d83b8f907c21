"""How the commands of a run that are only journal become events: a child, a detached tree, a record, an end.

Nothing here waits and nothing here fails the run: what cannot be written parks it, because with another limit or codec
it can go on from there.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from outlive._kernel.client.birth import new_tree
from outlive._kernel.client.message_key import key_of_cancel
from outlive._kernel.define.middleware import RunTracer
from outlive._kernel.journal.codec import NO_ROWS
from outlive._kernel.journal.event import (
    AnyEvent,
    ApprovalEscalated,
    ApprovalRequested,
    AskAnswered,
    DetachedCancelled,
    DetachedStarted,
    RunParked,
    SignalReceived,
    SnapshotTaken,
)
from outlive._kernel.journal.failure import storable
from outlive._kernel.journal.fold import Fold
from outlive._kernel.journal.packing import inbox_mark, tree_mark
from outlive._kernel.model import Payload
from outlive._kernel.model.approval import ApprovalRequest
from outlive._kernel.model.promise import PROMISE
from outlive._kernel.model.under_way import Interrupted
from outlive._kernel.replay.command import (
    EndRun,
    RecordFact,
    StartChild,
    StartDetached,
    Successor,
    TakeSnapshot,
    WorkflowSpec,
)
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import NOTHING_PUBLISHED
from outlive._kernel.runtime.clock import Clock
from outlive._kernel.runtime.tree.draft import Draft
from outlive._kernel.runtime.tree.events import event_of_child, event_of_end, event_of_record, message_to_starter
from outlive._kernel.runtime.tree.generation import next_generation
from outlive._kernel.runtime.tree.payloads import TreePayloads
from outlive._kernel.store.contract import Message, MessageKind
from outlive.errors import OutliveError


class TreeWriting(Protocol):
    """A tree while the next change of its journal is written: what the translations below need of it."""

    clock: Clock
    digest: int
    execution: Execution
    fold: Fold
    interrupted: tuple[Interrupted, ...]
    journal: int
    payloads: TreePayloads
    seq: int
    tracer: RunTracer | None

    @property
    def id(self) -> str:
        """The id of the root run."""

    def listen(self, spec: WorkflowSpec) -> None:
        """A run of this workflow is in the tree."""

    def open_draft(self) -> Draft:
        """The draft of the change."""

    def pack(self, data: bytes, what: str, *, of: str = "") -> Payload:
        """Store a value with the change; `of` is its owner, if that is not the tree."""


Translated = StartChild | StartDetached | RecordFact | EndRun | TakeSnapshot
TRANSLATED = (StartChild, StartDetached, RecordFact, EndRun, TakeSnapshot)
"""Commands that become events when they are recorded."""


def event_of_command(live: TreeWriting, command: Translated) -> AnyEvent:
    """The event of a command that has no effect outside the journal."""
    try:
        match command:
            case StartChild():
                live.listen(command.workflow)
                arguments = live.pack(command.arguments, f"the arguments of {command.workflow.name}")
                return event_of_child(command, at=live.clock.now(), arguments=arguments)
            case StartDetached():
                return _start_detached(live, command)
            case RecordFact():
                return _record_of(live, command)
            case EndRun():
                return _end(live, command)
            case TakeSnapshot():
                return _snapshot_of(live, command)
    except Exception as error:  # Too large, or a payload codec of the user's that raises.
        return _parked(live, error)


def _snapshot_of(live: TreeWriting, command: TakeSnapshot) -> SnapshotTaken:
    """The event that replaces everything recorded so far; to be recorded next."""
    root, created = live.fold.root, live.execution.created
    assert created is not None
    created = msgspec.structs.replace(created, tags=root.tags)  # It may have given itself others.
    # A replay from here has no other clock, and the time of the run may be ahead of this worker's.
    at = max(live.clock.now(), live.execution.loop.now_at)
    payload = live.pack(command.data, "a snapshot")
    live.digest = NO_ROWS  # The journal begins with the snapshot now.
    return SnapshotTaken(
        at=at,
        created=created,
        events=live.seq + 1,
        worker=root.owner,
        epoch=root.epoch,
        attempts=root.attempts,
        payload=payload,
        wake_at=root.wake_at,
        published=root.published,
        signals=tuple(SignalReceived(at=at, name=name, payload=each) for name, each in command.signals),
        asks=command.asks,
        set_aside=command.set_aside,
        retried=live.execution.retried,
    )


def _parked(live: TreeWriting, error: Exception) -> RunParked:
    # A failed run would be over; with another limit or codec a parked one can go on from here.
    reason = error.summary if isinstance(error, OutliveError) else f"{type(error).__qualname__}: {error}"
    return RunParked(at=live.clock.now(), reason=storable(reason))


def _record_of(live: TreeWriting, command: RecordFact) -> AnyEvent:
    at, payload = live.clock.now(), None
    if command.data is not None:
        # An answer is the sender's, who knows the run by its id and not in which generation it was given.
        of = inbox_mark(live.id) if isinstance(command.fact, AskAnswered) else ""
        payload = live.pack(command.data, f"{type(command.fact).__name__} {command.call}", of=of)
    if isinstance(command.fact, DetachedCancelled):
        message = Message(
            run_id=command.fact.run_id,
            kind=MessageKind.CANCEL,
            at=at,
            name="cancelled by its starter",
            key=key_of_cancel(0, live.execution.nonce, call=command.call),
        )
        live.open_draft().change.messages.append(message)
    event = event_of_record(command, at=at, payload=payload)
    if isinstance(event, ApprovalRequested) and command.data is not None:
        asked = msgspec.json.decode(command.data, type=ApprovalRequest)
        return msgspec.structs.replace(event, assignees=asked.assignees)
    if isinstance(event, ApprovalEscalated) and command.data is not None:
        return msgspec.structs.replace(event, assignees=msgspec.json.decode(command.data, type=tuple[str, ...]))
    return event


def _start_detached(live: TreeWriting, command: StartDetached) -> DetachedStarted:
    at = live.clock.now()
    change = new_tree(
        run_id=command.run_id,
        workflow=command.workflow,
        arguments=command.arguments,
        packer=live.payloads.packer,
        at=at,
        nonce=live.clock.nonce(),
        tags=command.tags,
        headers=_passed_on(live, command.run),
        timeout_seconds=command.timeout_seconds,
        notify=live.id,
        payload=command.payload,
        place=command.place,
    )
    live.open_draft().change.starts.append(change)
    return DetachedStarted(at=at, run=command.run, call=command.call, run_id=command.run_id, digest=command.digest)


def _passed_on(live: TreeWriting, run: int) -> dict[str, str]:
    """The headers of a tree that a run brings about."""
    headers = live.execution.headers
    return headers if live.tracer is None else live.tracer.pass_on(headers, live.fold.runs[run])


def _end(live: TreeWriting, command: EndRun) -> AnyEvent:
    run = live.fold.runs[command.run]
    result = None if command.result is None else live.pack(command.result, f"the result of run {run.id}")
    interrupted = live.interrupted and tuple(each for each in live.interrupted if command.run in (0, each.run))
    follows = 0 if command.run else live.digest
    event = event_of_end(command, at=live.clock.now(), result=result, interrupted=interrupted, follows=follows)
    if command.successor is not None:
        _continue_as(live, command.successor, event)
    elif not command.run and (frame := live.execution.frames.get(0)) is not None and frame.buffer:
        event = msgspec.structs.replace(event, unread=frame.buffered_places())
    message = message_to_starter(run, event, retried=live.execution.retried) if command.run == 0 else None
    if message is not None:
        live.open_draft().change.messages.append(message)
    return event


def _continue_as(live: TreeWriting, successor: Successor, event: AnyEvent) -> None:
    """Create the next generation in the change that ends this one."""
    frame, nonce, created = live.execution.frames[0], live.clock.nonce(), live.execution.created
    assert created is not None
    # Packed again: what a payload codec has bound to the old tree could not be read in the new one.
    owner = tree_mark(nonce)
    arguments, blob = live.payloads.packer.pack(
        successor.arguments, f"the arguments of {successor.workflow.name}", of=owner
    )
    published, shown = None, None
    if frame.published != NOTHING_PUBLISHED:
        published, shown = live.payloads.packer.pack(frame.published, "what is published", of=owner)
    fold = Fold(live.id)
    fold.runs = dict(live.fold.runs)
    fold.apply(event)
    change = next_generation(
        successor,
        fold.runs,
        journal=live.journal,
        generation=live.execution.generation,
        created=msgspec.structs.replace(created, headers=_passed_on(live, 0)),
        at=event.at,
        nonce=nonce,
        arguments=arguments,
        published=published,
        blobs=[each for each in (blob, shown) if each is not None],
        # The next generation has promises of its own.
        signals=[(name, signal) for name, signal in frame.buffered_signals() if not name.startswith(PROMISE)],
        asks=frame.open_asks(),
    )
    live.open_draft().change.starts.append(change)
