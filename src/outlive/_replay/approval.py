"""How a workflow asks people and hears what they decided.

A request is a fact that the run records by itself (`ApprovalRequested`), under a call identity of its own. The decision
comes as `ApprovalDecided`, which names that call and is the only event that resolves the wait. A wait that ends in any
other way takes the request back with `ApprovalClosed`, so that nobody decides in vain: cancelled, timed out, its
deadline over, or the end of the run. A dropped run takes nothing back; it goes on elsewhere.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any
from zlib import crc32

import msgspec

from outlive._journal.event import ApprovalClosed, ApprovalEscalated, ApprovalRequested
from outlive._journal.form import FormType
from outlive._journal.value import Stored
from outlive._model.approval import ApprovalRequest, Decision
from outlive._model.payload import NO_PAYLOAD
from outlive._replay.ask import read_or_park
from outlive._replay.asking import Asking
from outlive._replay.execution import Execution
from outlive._replay.frame import APPROVAL, SCOPE, Scope
from outlive._replay.set_aside import read_or_set_aside
from outlive.errors import ApprovalExpired, UnreadableError

ESCALATION = "@escalation"
CLOSING = "@closing"
WATCH = "watch"

_encode = msgspec.json.Encoder().encode


def ask(execution: Execution, name: str, request: ApprovalRequest, *, again: str = "") -> Asking:
    """Ask people for a decision; `again` says why they are asked once more."""
    scope = SCOPE.get()
    frame = scope.frame
    call = scope.call(f"{APPROVAL}/{name}")
    asking = Asking(
        call,
        execution.loop.create_future(),
        name=name,
        title=request.title,
        assignees=request.assignees,
        deadline_at=request.deadline_at,
        again=again,
    )
    frame.approvals[call] = asking
    fact = ApprovalRequested(
        at=0, run=frame.number, call=call, name=name, payload=NO_PAYLOAD, digest=_digest_of(request)
    )
    execution.record(fact, _encode(request))
    return asking


def _digest_of(request: ApprovalRequest) -> int:
    """Who is asked, and until when: a replay that says otherwise contradicts the journal.

    How it is put is not in it. A title may be worded anew while people are being asked, and the schema of one and the
    same form changes with the release of the library that writes it.
    """
    return crc32(_encode(msgspec.structs.replace(request, title="", form=msgspec.UNSET)))


def watch_scope(asking: Asking) -> Scope:
    """The scope of what happens beside the wait. It is made of the request alone, so that whether there is a deadline
    or a reminder changes the identity of no other call; no name of an approval has a '/'."""
    return Scope(SCOPE.get().frame, f"{asking.call}/{WATCH}")


async def decision(execution: Execution, asking: Asking, form: FormType | None) -> tuple[Decision, Any] | str:
    """Wait for what people decide, and the form that they filled in. If that cannot be read it was set aside, and the
    answer is why: they have to be asked again."""
    execution.refuse_if_dropped()
    frame = SCOPE.get().frame
    try:
        decided, message = await asking.future
    except (asyncio.CancelledError, ApprovalExpired):
        # With the decision already in its hands there is nothing to take back: it is in the journal.
        if frame.approvals.pop(asking.call, None) is not None and not execution.loop.is_dropped:
            call = watch_scope(asking).call(CLOSING)
            execution.record(ApprovalClosed(at=0, run=frame.number, call=call, approval=asking.call))
        raise

    def read(_: Stored) -> tuple[Decision, Any]:
        if isinstance(decided, UnreadableError):
            raise decided
        if decided.form is msgspec.UNSET or form is None:
            return decided, None
        return decided, form.decode(decided.form, f"the form of approval {asking.name!r}")

    where = {"name": asking.name, "approval": asking.call}
    answer = await read_or_park(execution, partial(read_or_set_aside, execution, frame, message, read, **where))
    return frame.set_aside[-1].reason if answer is None else answer[0]


def expire(asking: Asking) -> None:
    """The deadline has passed."""
    if not asking.future.done():
        asking.future.set_exception(ApprovalExpired(asking.name, asking.assignees))


def escalate(execution: Execution, asking: Asking, others: tuple[str, ...]) -> None:
    """Ask others too; called in the scope of the watch."""
    scope = SCOPE.get()
    asking.assignees += tuple(person for person in others if person not in asking.assignees)
    everyone = _encode(asking.assignees)
    fact = ApprovalEscalated(
        at=0,
        run=scope.frame.number,
        call=scope.call(ESCALATION),
        approval=asking.call,
        payload=NO_PAYLOAD,
        digest=crc32(everyone),
    )
    execution.record(fact, everyone)
