"""The audit of approvals: requests and decisions, folded from a journal.

Of a decision and a closing the first in the journal counts. A decision that still lies in the inbox is durable and the
only one there will be, so it counts like one in the journal, unless the request is closed already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from outlive._kernel.journal.event import (
    AnyEvent,
    ApprovalClosed,
    ApprovalDecided,
    ApprovalEscalated,
    ApprovalRequested,
    Ending,
    MessageSetAside,
    RunClaimed,
    RunForked,
    RunRetried,
)
from outlive._kernel.journal.value import Stored
from outlive._kernel.model import Payload, Run, child_id
from outlive._kernel.model.approval import Approval, Decision
from outlive._kernel.model.approval import ApprovalRequest as StoredRequest
from outlive._kernel.model.instant import instant_of
from outlive._kernel.replay.frame import read_decision
from outlive._kernel.store.contract import InboxMessage, MessageKind
from outlive._kernel.values.approval import ApprovalRequest, ApprovalStatus
from outlive.errors import UnreadableError

T = TypeVar("T")

ENDED = "the run has ended"
Unpack = Callable[[Payload], Stored]
Hide = Callable[[Any], Any]
"""Takes what an engine redacts out of a JSON value."""
Key = tuple[int, str]
"""The number of a run and the call of its request."""


class Audit:
    """The approvals of one tree."""

    def __init__(self, root: Run, unpack: Unpack, hide: Hide) -> None:
        self._hide = hide
        self._root_id = root.root_id
        self._nonce = root.nonce
        self._unpack = unpack
        self.entries: dict[Key, ApprovalRequest] = {}
        self.decisions: dict[Key, Decision] = {}
        self._rests_since = 0
        """When the tree was brought back, as long as no worker has claimed it since; else 0."""

    def read(self, events: Iterable[AnyEvent], inbox: Iterable[InboxMessage], *, now_at: int) -> None:
        """Fold a journal and what waits in the inbox."""
        for event in events:
            self._apply(event)
        self._go_on(now_at)
        for message in inbox:
            if message.kind is MessageKind.DECISION and message.payload is not None:
                self._decide((message.run, message.name), message.payload)
        for key, entry in self.entries.items():
            if entry.status == "pending" and entry.deadline is not None and entry.deadline <= instant_of(now_at):
                # Its worker may be down and has not said so yet; it will expire all the same.
                self._close(key, entry.deadline, "its deadline has passed")
        for key, entry in self.entries.items():
            ended_at = entry.closed_at or (entry.decision.at if entry.decision is not None else instant_of(now_at))
            self.entries[key] = replace(entry, age=max(ended_at - entry.requested_at, timedelta(0)))

    def _apply(self, event: AnyEvent) -> None:
        match event:
            case ApprovalRequested():
                self._request(event)
            case ApprovalEscalated():
                everyone = _read(self._unpack(event.payload), tuple[str, ...], event.call)
                self._change((event.run, event.approval), assignees=everyone, escalated_at=instant_of(event.at))
            case ApprovalDecided():
                self._decide((event.run, event.approval), event.payload)
            case MessageSetAside():
                self._set_aside(event)
            case ApprovalClosed():
                self._close((event.run, event.approval), instant_of(event.at), "the run no longer waits for it")
            case RunRetried():
                self._reopen(event)
            case RunForked():
                self._put_off(event.rested)
                self._rests_since = event.at if event.rests else 0
            case RunClaimed():
                self._go_on(event.at)
            case _:
                if isinstance(event, Ending):
                    for key in list(self.entries):
                        if event.run in (0, key[0]):
                            self._close(key, instant_of(event.at), ENDED)

    def _reopen(self, event: RunRetried) -> None:
        """The run goes on: its open requests are open again, with as much time left as they had."""
        if event.run == 0:
            # Its rest before it ended counts too, if no worker had it meanwhile.
            self._put_off(event.at - self._rests_since if self._rests_since else event.rested)
            self._rests_since = event.at if event.rests else 0
        own = {key: entry for key, entry in self.entries.items() if key[0] == event.run and entry.status == "closed"}
        if event.approvals is None:  # An earlier release wrote it.
            reopened = [key for key, entry in own.items() if entry.reason == ENDED]
        else:
            reopened = [(event.run, request.call) for request in event.approvals]
        for key in reopened:
            if key in own:
                self._change(key, status="pending", closed_at=None, reason="")

    def _go_on(self, at: int) -> None:
        """A worker has the tree, or would have it now: until then its deadlines stood still."""
        if self._rests_since:
            self._put_off(max(0, at - self._rests_since))
            self._rests_since = 0

    def _put_off(self, time: int) -> None:
        for key, entry in self.entries.items():
            if entry.deadline is not None and entry.decision is None:
                self._change(key, deadline=entry.deadline + timedelta(microseconds=time))

    def _request(self, event: ApprovalRequested) -> None:
        asked = _read(self._unpack(event.payload), StoredRequest, event.call)
        self.entries[event.run, event.call] = ApprovalRequest(
            id=event.call,
            run_id=child_id(self._root_id, event.run),
            name=event.name,
            status="pending",
            title=asked.title,
            assignees=asked.assignees,
            schema=None if asked.form is msgspec.UNSET else msgspec.json.decode(asked.form),
            requested_at=instant_of(event.at),
            deadline=None if asked.deadline_at is None else instant_of(asked.deadline_at),
        )

    def _decide(self, key: Key, payload: Payload) -> None:
        entry = self.entries.get(key)
        if entry is None or entry.status != "pending":
            return
        decision = read_decision(self._unpack(payload), key[1])
        if isinstance(decision, Decision) and decision.nonce == self._nonce:
            self.decisions[key] = decision
            status: ApprovalStatus = "approved" if decision.approved else "rejected"
            self._change(key, status=status, decision=approval_of(entry.name, decision, self._hide))

    def _set_aside(self, event: MessageSetAside) -> None:
        """The run could not read the decision, and asks again: with a request of its own."""
        key = event.run, event.approval
        decision = self.decisions.pop(key, None)
        by = "" if decision is None else f" of {decision.by}"
        reason = f"the decision{by} was set aside, and it is asked again: {event.reason}"
        self._change(key, status="closed", closed_at=instant_of(event.at), decision=None, reason=reason)

    def _close(self, key: Key, at: datetime, reason: str) -> None:
        if key in self.entries and self.entries[key].status == "pending":
            self._change(key, status="closed", closed_at=at, reason=reason)

    def _change(self, key: Key, **changes: Any) -> None:
        if key in self.entries:
            self.entries[key] = replace(self.entries[key], **changes)


def approval_of(name: str, decision: Decision, hide: Hide) -> Approval[Any]:
    """A decision as users see it, with the form as plain JSON."""
    form = None if decision.form is msgspec.UNSET else hide({name: msgspec.json.decode(decision.form)})[name]
    return Approval(
        name=name,
        approved=decision.approved,
        by=decision.by,
        at=instant_of(decision.at),
        comment=decision.comment,
        form=form,
    )


def _read(data: Stored, kind: type[T], call: str) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"the request {call}", str(kind), str(error)) from error
