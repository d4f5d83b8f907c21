"""Asks on their way in and out: judged before they are events, and answered with the event that says so."""

from __future__ import annotations

from msgspec.structs import replace

from outlive._kernel.client.message_key import key_of_ask
from outlive._kernel.journal.event import AnyEvent, AskAnswered, AskReceived
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.model import child_id
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.serving import judge
from outlive._kernel.store.contract import Answer, InboxMessage, MessageRefusal
from outlive.errors import UnreadableError


def judged(
    event: AnyEvent, message: InboxMessage, execution: Execution, *, journal: int
) -> tuple[AnyEvent, MessageRefusal | None]:
    """The event of an ask, and why there is to be none: the run refuses it, or it cannot be read."""
    failure = None
    if message.fault and message.key:
        failure = failure_of(UnreadableError(f"ask {message.name!r}", "a message", message.fault))
    elif isinstance(event, AskReceived):
        is_checked, failure = judge(execution, event.run, event.name, event.payload)
        event = replace(event, checked=is_checked)
    if failure is None:
        return event, None
    return event, MessageRefusal(journal=journal, message=message.id, answer=Answer(key=message.key, failure=failure))


def answer_of(event: AskAnswered, root_id: str) -> Answer:
    """The answer for the sender of an ask."""
    key = key_of_ask(child_id(root_id, event.run) if event.run else root_id, event.name, event.key)
    return Answer(key=key, result=event.payload, failure=event.failure)
