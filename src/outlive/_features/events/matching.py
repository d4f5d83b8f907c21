"""Which workflows an event starts, and what each of their runs is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import UNSET

from outlive._features.events.triggers import Triggers
from outlive._kernel.client.slices import mismatch_of
from outlive._kernel.journal.described import input_of
from outlive._kernel.model.trigger import EventTrigger, RefusedStart, SentEvent, WebhookTrigger, fits
from outlive.errors.base import message_of
from outlive.errors.program import ExpressionError

UNFIT = (ValueError, ExpressionError)
"""The errors of `arguments_by` for an event that does not fit a workflow."""


class Match(NamedTuple):
    """A workflow that an event starts."""

    workflow: str
    triggers: Triggers
    arguments: bytes
    """The arguments of its run, in the form of a journal."""


class Webhook(NamedTuple):
    """A webhook of a workflow."""

    workflow: str
    triggers: Triggers
    trigger: WebhookTrigger


async def match(event: SentEvent, known: Mapping[str, Triggers]) -> tuple[list[Match], list[RefusedStart]]:
    """The workflows that an event starts; and workflows that have a trigger for it and cannot take it."""
    found: list[Match] = []
    refused: list[RefusedStart] = []
    scope = {"event": {"type": event.type, "id": event.id, "source": event.source, "time": event.time}}
    scope["event"]["data"] = event.data
    # In one order everywhere: two senders of one event must not wait for each other.
    for workflow, triggers in sorted(known.items(), key=itemgetter(0)):
        fitting = [each for each in triggers.all.events if fits(each.event, event.type)]
        try:
            arguments = await arguments_by(triggers, fitting, scope)
        except UNFIT as error:
            refused.append(RefusedStart(workflow, message_of(error)))
            continue
        if arguments is not None:
            found.append(Match(workflow, triggers, arguments))
    return found, refused


async def arguments_by(
    triggers: Triggers, fitting: Iterable[EventTrigger | WebhookTrigger], scope: dict[str, Any]
) -> bytes | None:
    """The arguments of a run by the first of these triggers whose condition is true, as a journal has them; None if
    there is none.

    Raises:
        ValueError, ExpressionError: an expression cannot be evaluated, or the workflow does not take the value.
    """
    for trigger in fitting:
        if not triggers.document:
            return await _checked(triggers, scope["event"]["data"])
        from outlive._features.flows.run.triggers import arguments_for, holds, mapped  # Only flows need it.

        if trigger.condition and not holds(trigger.condition, scope):
            continue
        is_mapped = trigger.input is not UNSET
        value = mapped(trigger.input, scope) if is_mapped else scope["event"]["data"]
        return await arguments_for(triggers.document, value, drop_unknown=not is_mapped)
    return None


async def _checked(triggers: Triggers, value: Any) -> bytes:
    """A value as the argument of a workflow in Python.

    Raises:
        ValueError: the workflow does not take it.
    """
    name = triggers.input_name
    by_name = {} if name is None else {name: value}
    if (mismatch := await mismatch_of(by_name, triggers.described.arguments)) is not None:
        raise ValueError(f"the data does not fit: {mismatch} ($ are the arguments)")
    return input_of(triggers.described, by_name)
