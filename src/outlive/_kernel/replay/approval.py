"""How a workflow asks people and hears what they decided.

A request is a fact that the run records by itself (`ApprovalRequested`), under a call identity of its own. The decision
comes as `ApprovalDecided`, which names that call and is the only event that resolves the wait. A wait that ends in any
other way withdraws the request with `ApprovalClosed`, so that no decision is made in vain: cancelled, timed out, its
deadline over, or the end of the run. A dropped run withdraws nothing; it goes on elsewhere.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any
from zlib import crc32

import msgspec

from outlive._kernel.journal.event import ApprovalClosed, ApprovalEscalated, ApprovalRequested
from outlive._kernel.journal.form import FormType
from outlive._kernel.journal.value import Stored
from outlive._kernel.model.approval import ApprovalRequest, Decision
from outlive._kernel.model.payload import NO_PAYLOAD
from outlive._kernel.replay.ask import read_or_park
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import APPROVAL, SCOPE, OpenApproval, Scope
from outlive._kernel.replay.set_aside import read_or_set_aside
from outlive.errors import ApprovalExpiredError, UnreadableError

ESCALATION = "@escalation"
CLOSING = "@closing"
WATCH = "watch"

_encode = msgspec.json.Encoder().encode


def ask(execution: Execution, name: str, request: ApprovalRequest, *, again: str = "") -> OpenApproval:
    """Ask people for a decision; `again` says why they are asked once more."""
    scope = SCOPE.get()
    frame = scope.frame
    call = scope.call(f"{APPROVAL}/{name}")
    asked = OpenApproval(
        call,
        execution.loop.create_future(),
        name=name,
        title=request.title,
        assignees=request.assignees,
        deadline_at=request.deadline_at,
        again=again,
    )
    frame.approvals[call] = asked
    fact = ApprovalRequested(
        at=0, run=frame.number, call=call, name=name, payload=NO_PAYLOAD, digest=_digest_of(request)
    )
    execution.record(fact, _encode(request))
    return asked


def _digest_of(request: ApprovalRequest) -> int:
    """The digest of a request, made of the people and the deadline: a replay in which these differ contradicts the
    journal.

    How it is put is not in it. A title may be reworded while people are being asked, and the schema of one and the
    same form changes with the release of the library that writes it.
    """
    return crc32(_encode(msgspec.structs.replace(request, title="", form=msgspec.UNSET)))


def watch_scope(asked: OpenApproval) -> Scope:
    """The scope of what happens beside the wait. It is made of the request alone, so that whether there is a deadline
    or a reminder changes the identity of no other call; no name of an approval has a '/'."""
    return Scope(SCOPE.get().frame, f"{asked.call}/{WATCH}")


async def decision(execution: Execution, asked: OpenApproval, form: FormType | None) -> tuple[Decision, Any] | str:
    """Wait for what people decide, and the form that they filled in. If that cannot be read it was set aside, and the
    answer is why: they have to be asked again."""
    execution.refuse_if_dropped()
    frame = SCOPE.get().frame
    try:
        decided, message = await asked.future
    except (asyncio.CancelledError, ApprovalExpiredError):
        # With the decision already in its hands there is nothing to withdraw: it is in the journal.
        if frame.approvals.pop(asked.call, None) is not None and not execution.loop.is_dropped:
            call = watch_scope(asked).call(CLOSING)
            execution.record(ApprovalClosed(at=0, run=frame.number, call=call, approval=asked.call))
        raise

    def read(_: Stored) -> tuple[Decision, Any]:
        if isinstance(decided, UnreadableError):
            raise decided
        if decided.form is msgspec.UNSET or form is None:
            return decided, None
        return decided, form.decode(decided.form, f"the form of approval {asked.name!r}")

    where = {"name": asked.name, "approval": asked.call}
    answer = await read_or_park(execution, partial(read_or_set_aside, execution, frame, message, read, **where))
    return frame.set_aside[-1].reason if answer is None else answer[0]


def expire(asked: OpenApproval) -> None:
    """The deadline has passed."""
    if not asked.future.done():
        asked.future.set_exception(ApprovalExpiredError(asked.name, asked.assignees))


def escalate(execution: Execution, asked: OpenApproval, others: tuple[str, ...]) -> None:
    """Ask others too; called in the scope of the watch."""
    scope = SCOPE.get()
    asked.assignees += tuple(person for person in others if person not in asked.assignees)
    everyone = _encode(asked.assignees)
    fact = ApprovalEscalated(
        at=0,
        run=scope.frame.number,
        call=scope.call(ESCALATION),
        approval=asked.call,
        payload=NO_PAYLOAD,
        digest=crc32(everyone),
    )
    execution.record(fact, everyone)
