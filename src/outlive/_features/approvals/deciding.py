"""How people decide: find the request, check the form, and leave exactly one decision.

A decision is a message with a key that is made of its request, and the store keeps one message for each key. So however
many decide, at once or a year later, from whatever process, one of them is first. The others are answered with what the
first one decided: it lies in the inbox or stands in the journal, as a worker moves it from one to the other in one
transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from outlive._features.approvals.audit import Audit, Key, approval_of
from outlive._kernel.client.acting import ACTING, doing
from outlive._kernel.client.client import Client
from outlive._kernel.client.message_key import key_of_decision
from outlive._kernel.client.slices import mismatch_of
from outlive._kernel.define.workflow import FORMS
from outlive._kernel.journal.event import ApprovalDecided, ApprovalEscalated, ApprovalRequested
from outlive._kernel.journal.form import encode_form
from outlive._kernel.journal.packing import inbox_mark
from outlive._kernel.model import Run, given
from outlive._kernel.model.approval import Approval, Decision
from outlive._kernel.store.contract import Delivery, Message, MessageKind
from outlive._kernel.values.approval import ApprovalRequest
from outlive.errors import RunFinishedError, UnreadableError
from outlive.errors.run import ApprovalClosedError, ApprovalFormError, ApprovalNotFoundError


class Decider:
    """Reads what runs ask people for, and takes decisions."""

    def __init__(self, client: Client) -> None:
        self._access, self._shown, self._inbox, self._new_id = client.access, client.shown, client.sender, client.new_id

    async def entries(self, run_id: str) -> list[ApprovalRequest]:
        """The requests of a run, oldest first; for a root, those of its whole tree."""
        run = await self._access.info(run_id)
        entries = (await self._read(run)).entries.values()
        return [entry for entry in entries if run.number == 0 or entry.run_id == run_id]

    async def read_all(self, runs: Sequence[Run]) -> dict[int, Audit]:
        """The approvals of the trees of these runs, by their journals."""
        trees = {run.journal: run for run in runs}
        return {journal: await self._read(run) for journal, run in trees.items()}

    async def decide(
        self,
        run_id: str,
        name: str,
        *,
        approved: bool,
        by: str | None,
        form: Any,
        comment: str,
        request: str | None,
        nonce: int | None = None,
    ) -> Approval[Any]:
        """Leave a decision, or get an earlier one.

        With a nonce: for that tree, and for no other that has taken the id.
        """
        where = "engine.approvals.approve" if approved else "engine.approvals.reject"
        acting = ACTING.get()
        by = given.text(where, "by", acting.name if by is None and acting is not None else by, like="ann")
        comment = given.text(where, "comment", comment, like="fine", least=0, most=given.TEXT_CHARACTERS_MAX)
        name = given.text(where, "name", name, like="refund")
        if request is not None:
            request = given.text(where, "request", request, like="entry.id", most=given.KEY_CHARACTERS_MAX)
        run = await self._access.info(run_id)
        if nonce not in (None, run.nonce):
            raise ApprovalNotFoundError(run_id, name, [])
        audit = await self._read(run)
        key = _choose(audit, run, name, request)
        entry = audit.entries[key]
        if entry.status != "pending":
            return _answer(entry)
        asker = run if entry.run_id == run_id else await self._access.info(entry.run_id)
        decision = Decision(
            id=self._new_id(),
            nonce=run.nonce,
            approved=approved,
            by=by,
            at=self._access.store.now(),
            comment=comment,
            form=await _checked(asker, entry, form, is_needed=approved),
        )
        if await self._send(asker, key, name, decision):
            return approval_of(name, decision, self._shown.hide)
        # Another decision was first, or the run has ended meanwhile. Which of the two is in the store.
        audit = await self._read(run)
        first = audit.decisions.get(key)
        return replace(_answer(audit.entries[key]), is_first=first is not None and first.id == decision.id)

    async def _send(self, asker: Run, key: Key, name: str, decision: Decision) -> bool:
        """Put it into the inbox; False if it is not the first, or too late."""
        data = msgspec.json.encode(decision)
        stored, blob = self._access.packer.pack(data, f"the decision on {key[1]}", of=inbox_mark(asker.id))
        message = Message(
            run_id=asker.id,
            kind=MessageKind.DECISION,
            at=decision.at,
            name=key[1],
            key=key_of_decision(decision.nonce, *key),
            payload=stored,
            blobs=(blob,) if blob else (),
        )
        verb = "approve" if decision.approved else "reject"
        try:
            with doing(verb, asker.id, f"{name}: {decision.comment}" if decision.comment else name):
                return await self._inbox.deliver(message) is Delivery.ACCEPTED
        except RunFinishedError:
            return False

    async def _read(self, run: Run) -> Audit:
        """The approvals of the tree of a run."""
        # The inbox first: a decision that moves into the journal meanwhile is then seen twice, and never not at all.
        inbox = await self._access.store.read_inbox([run.journal])
        decisions = [message for message in inbox.get(run.journal, ()) if message.kind is MessageKind.DECISION]
        events = await self._access.events(run)
        facts = [it for it in events if isinstance(it, ApprovalRequested | ApprovalEscalated | ApprovalDecided)]
        blobs = await self._access.blobs(it.payload for it in [*facts, *decisions])
        audit = Audit(run, lambda payload: self._access.packer.unpack(payload, blobs), self._shown.hide)
        audit.read(events, decisions, now_at=self._access.store.now())
        return audit


def _choose(audit: Audit, run: Run, name: str, request: str | None) -> Key:
    """The request that is meant: the oldest open one of this name, else the last one that there was.

    Of a root id also those of its children are meant, if it has none of this name itself and one run only has.
    """
    named = {
        key: entry
        for key, entry in audit.entries.items()
        if entry.name == name and request in (None, entry.id) and run.number in (0, key[0])
    }
    own = {key: entry for key, entry in named.items() if key[0] == run.number} or named
    pending = [key for key, entry in own.items() if entry.status == "pending"]
    among = pending or list(own)
    if len({number for number, _ in among}) != 1:
        waiting = [f"{entry.run_id} {entry.name}" for entry in audit.entries.values() if entry.status == "pending"]
        raise ApprovalNotFoundError(run.id, name, waiting, request=request, are_several=bool(among))
    return pending[0] if pending else among[-1]


def _answer(entry: ApprovalRequest) -> Approval[Any]:
    """The decision of another person, who was first."""
    if entry.decision is None:
        raise ApprovalClosedError(entry.run_id, entry.name, entry.reason or "the run does not wait for it any more")
    return replace(entry.decision, is_first=False)


async def _checked(
    asker: Run, entry: ApprovalRequest, form: Any, *, is_needed: bool
) -> msgspec.Raw | msgspec.UnsetType:
    """The JSON of a form that fits: by its schema, and by its type if this process has the workflow and it says so.

    Raises:
        ApprovalFormError: it does not fit.
    """
    if form is None and (entry.schema is None or not is_needed):
        return msgspec.UNSET
    if entry.schema is None:
        raise ApprovalFormError(entry.name, "there is nothing to fill in")
    try:
        data = encode_form(form)
    except Exception as error:  # A form may be an object of the user's that writes itself.
        raise ApprovalFormError(entry.name, str(error)) from error
    mismatch = await mismatch_of(msgspec.json.decode(data), entry.schema)
    if mismatch is not None:
        # A person has to fill in the fields that an empty form lacks.
        lacking = await mismatch_of({}, entry.schema) if form is None else None
        reason = mismatch if form is not None else f"nothing is filled in{f': {lacking}' if lacking else ''}"
        raise ApprovalFormError(entry.name, reason)
    kind = FORMS.get((asker.workflow, asker.version), {}).get(entry.name)
    if kind is not None:
        try:
            kind.decode(data, f"the form of approval {entry.name!r}")
        except UnreadableError as error:
            raise ApprovalFormError(entry.name, error.reason) from error
    return msgspec.Raw(data)
