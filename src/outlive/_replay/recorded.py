"""What facts that a run has decided by itself do to its tree: what it published, whom it asked, a mark that it took.

What happened stays as the journal has it, also if the code would record something else now.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from outlive._journal.event import ApprovalEscalated, ApprovalRequested, PatchTaken, RunPublished, StateLeft
from outlive._journal.value import Stored
from outlive._model.payload import NO_PAYLOAD
from outlive._replay.call import RecordCall
from outlive._replay.command import Recorded
from outlive._replay.divergence import contradiction, unasked
from outlive._replay.frame import PATCH
from outlive._replay.tree import RunTree
from outlive._replay.waiting import asked_by
from outlive.errors import UnreadableError

T = TypeVar("T")


def on_recorded(tree: RunTree, event: Recorded) -> None:
    """A fact that the run decided by itself is in the journal."""
    recorded = f"{type(event).__name__} {event.call}"
    call = tree.find(event, event.run, event.call, RecordCall, recorded)
    if as_asked(event) != call.command.fact:
        tree.differ(event, event.run, event.call)
        _keep_recorded(tree, event, call)
    del tree.calls[event.run, event.call]


def _keep_recorded(tree: RunTree, event: Recorded, call: RecordCall) -> None:
    """The code would record something else now: what happened stays as the journal has it."""
    frame = tree.frames[event.run]
    match event:
        case RunPublished():
            frame.published = bytes(tree.unpack(event.payload))
        case ApprovalRequested() if (asking := frame.approvals.get(event.call)) is not None:
            asking.assignees = _read(_Asked, tree.unpack(event.payload), event.call).assignees
        case ApprovalEscalated() if (asking := frame.approvals.get(event.approval)) is not None:
            asking.assignees = _read(tuple[str, ...], tree.unpack(event.payload), event.call)
        case StateLeft():
            went = _read(_Left, tree.unpack(event.payload), event.call).to
            goes = _read(_Left, call.command.data or b"{}", event.call).to
            if went != goes:
                raise contradiction(tree, event, f"{event.call} was left for {went}", f"goes to {goes}")
        case _:
            """It has no content but its name, or its approval is no longer waited for."""


class _Left(msgspec.Struct):
    """Of the payload of `StateLeft`: the state that the machine goes to."""

    to: str = ""


class _Asked(msgspec.Struct):
    """Of the payload of `ApprovalRequested`: the people who are asked."""

    assignees: tuple[str, ...] = ()


def _read(kind: type[T], data: Stored, what: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise UnreadableError(what, "what a run recorded", str(error)) from error


def on_published(tree: RunTree, event: RunPublished) -> None:
    """The run, or a step of it, has shown something to people."""
    frame = tree.frames.get(event.run)
    if event.call and (frame is None or (event.run, event.call) in tree.calls):
        on_recorded(tree, event)
    elif frame is not None:
        if event.call:
            # The code has nothing new to publish here now. That changes nothing in what it does.
            tree.differ(event, event.run, event.call)
        frame.published = bytes(tree.unpack(event.payload))


def on_patched(tree: RunTree, event: PatchTaken) -> None:
    """The run has taken the new way at a mark."""
    frame = tree.frames.get(event.run)
    is_asked = tree.calls.pop((event.run, event.call), None) is not None
    if frame is None:
        return
    frame.patches[event.call] = True
    if not is_asked:
        # Either this code is older than the change, or it has only the new way left and waits for the same things.
        tree.unasked_marks[event.run, event.call] = None
        if event.asked not in (0, asked_by(tree, frame)):
            raise unasked(tree, event, f"the change {event.call.removeprefix(PATCH)!r} was taken")


def as_asked(event: Recorded) -> Recorded:
    """The event as the run asked for it: without its time, and with the digest for the payload."""
    if hasattr(event, "payload"):
        return msgspec.structs.replace(event, at=0, payload=NO_PAYLOAD)
    return msgspec.structs.replace(event, at=0)
