"""Built-ins that talk to people and to other runs: `publish`, `emit`, `signal`, `event`, `ask`, `wait_for_signal`,
`approval`.

What they send is in the journal of the run, or goes through a step of Outlive's own: sent once, also after a crash.
"""

from __future__ import annotations

from typing import Any

import msgspec

from outlive._cel import ANY, BOOL, MAP, NULL, STRING
from outlive._features.approvals.in_workflow import wait_for_approval
from outlive._features.flows.built_in.contract import BuiltIn, Call
from outlive._features.flows.document.model import Span, seconds_of
from outlive._features.flows.run.plain_data import plain_value
from outlive._kernel.define.decide import emit, publish
from outlive._kernel.define.in_run import wait_for_signal
from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.define.talking import send, signal
from outlive.errors.step import FlowStepError


class PublishArguments(msgspec.Struct, frozen=True):
    """The arguments of `publish`: any fields."""


class Publish:
    """Shows fields of the run to people: `with: {stage: packing}`."""

    name = "publish"
    arguments = PublishArguments
    takes_anything = True
    is_control = True
    result = NULL

    async def run(self, call: Call, given: Any) -> None:
        """See `BuiltIn`."""
        if not isinstance(given, dict):
            raise FlowStepError(call.id, "publish takes fields by name, for example `with: {stage: packing}`")
        publish(**given)


class EmitArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `emit`."""

    stream: str
    value: Any


class Emit:
    """Gives readers of a stream of the run an item."""

    name = "emit"
    arguments = EmitArguments
    is_control = True
    result = NULL

    async def run(self, call: Call, given: EmitArguments) -> None:
        """See `BuiltIn`."""
        await emit(given.stream, given.value)


class SignalArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `signal`."""

    run: str
    """The id of the run that gets it."""
    name: str
    value: Any = None
    key: str | None = None
    """A signal with the same key is the same signal."""


class Signal:
    """Sends a signal to another run: durable, and delivered once."""

    name = "signal"
    arguments = SignalArguments
    is_control = True
    result = NULL

    async def run(self, call: Call, given: SignalArguments) -> None:
        """See `BuiltIn`."""
        await signal(given.run, given.name, given.value, key=given.key)


class EventArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `event`."""

    type: str
    """The type of the event, for example order.created."""
    data: Any = None
    id: str | None = None
    """Which event it is; that of this call unless given, so that a crash does not make it two."""
    source: str | None = None


class SendEvent:
    """Sends an event, which starts one run of every flow and workflow that has a trigger for it."""

    name = "event"
    arguments = EventArguments
    is_control = True
    result = MAP({"id": STRING, "runs": ANY, "refused": ANY, "deliveries": ANY})

    async def run(self, call: Call, given: EventArguments) -> Any:
        """See `BuiltIn`."""
        sent = await send(given.type, given.data, id=given.id, source=given.source)
        return msgspec.to_builtins(sent)


class AskArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `ask`."""

    run: str
    name: str
    value: Any = None


class Ask:
    """Asks another run something (`outlive.asks`), and waits for its answer."""

    name = "ask"
    arguments = AskArguments
    result = ANY

    async def run(self, call: Call, given: AskArguments) -> Any:
        """See `BuiltIn`."""
        return plain_value(await call.step(ask_run, given.run, given.name, given.value), f"the answer to {call.id}")


async def ask_run(run: str, name: str, value: Any) -> Any:
    """Ask a run; the call has one key, so a second attempt gets the answer to the first."""
    source = CURRENT_STEP.get()
    engine: Any = source.engine
    return await engine.ask(run, name, value, key=source.context().idempotency_key)


class WaitArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `wait_for_signal`."""

    name: str


class WaitForSignal:
    """Waits for a signal, and gives its value. The `timeout` of the step is how long."""

    name = "wait_for_signal"
    arguments = WaitArguments
    is_control = True
    result = ANY

    async def run(self, call: Call, given: WaitArguments) -> Any:
        """See `BuiltIn`."""
        return plain_value(await wait_for_signal(given.name), f"signal {given.name!r}")


class ApprovalArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `approval`."""

    title: str = ""
    """The question, for people."""
    name: str = ""
    """The name that deciders see; the id of the step unless given."""
    assignees: list[str] = []
    deadline: Span | None = None
    escalate_after: Span | None = None
    escalate_to: list[str] = []


class Approval:
    """Waits until a person approves or rejects; a rejection is a result and no failure."""

    name = "approval"
    arguments = ApprovalArguments
    is_control = True
    result = MAP({"approved": BOOL, "by": STRING, "at": STRING, "comment": STRING, "form": ANY})

    async def run(self, call: Call, given: ApprovalArguments) -> Any:
        """See `BuiltIn`."""
        decided = await wait_for_approval(
            given.name or call.id,
            title=given.title,
            assignees=given.assignees,
            deadline=None if given.deadline is None else seconds_of(given.deadline),
            escalate_after=None if given.escalate_after is None else seconds_of(given.escalate_after),
            escalate_to=given.escalate_to,
        )
        return {
            "approved": decided.approved,
            "by": decided.by,
            "at": decided.at.isoformat(),
            "comment": decided.comment,
            "form": plain_value(decided.form, f"the form of {call.id}"),
        }


_ALL = (Publish(), Emit(), Signal(), SendEvent(), Ask(), WaitForSignal(), Approval())
BUILT_INS: dict[str, BuiltIn] = {each.name: each for each in _ALL}
