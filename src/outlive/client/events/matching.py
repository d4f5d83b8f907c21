"""Which workflows an event starts, and what each of their runs is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from outlive._journal.described import find_argument_mismatch, input_of
from outlive._model.trigger import EventTrigger, RefusedStart, SentEvent, fits
from outlive.client.events.triggers import Triggers


class Match(NamedTuple):
    """A workflow that an event starts."""

    workflow: str
    triggers: Triggers
    arguments: bytes
    """Of its run, as a journal has them."""


def match(event: SentEvent, known: Mapping[str, Triggers]) -> tuple[list[Match], list[RefusedStart]]:
    """The workflows that an event starts; and those that have a trigger for it and cannot be given it."""
    found: list[Match] = []
    refused: list[RefusedStart] = []
    # In one order everywhere: two senders of one event must not wait for each other.
    for workflow, triggers in sorted(known.items(), key=itemgetter(0)):
        fitting = [each for each in triggers.events if fits(each.event, event.type)]
        if not fitting:
            continue
        try:
            arguments = _arguments(event, triggers, fitting)
        except ValueError as error:
            refused.append(RefusedStart(workflow, str(error)))
            continue
        if arguments is not None:
            found.append(Match(workflow, triggers, arguments))
    return found, refused


def _arguments(event: SentEvent, triggers: Triggers, fitting: Iterable[EventTrigger]) -> bytes | None:
    """The arguments of the run by the first trigger whose condition is true; None if there is none.

    Raises:
        ValueError: an expression cannot be evaluated, or the workflow does not take the value.
    """
    for trigger in fitting:
        if not trigger.condition and trigger.input is msgspec.UNSET:
            return checked_arguments(triggers, event.data)
    return None


def checked_arguments(triggers: Triggers, value: Any) -> bytes:
    """A value as the arguments of a run, as a journal has them.

    Raises:
        ValueError: the workflow does not take it.
    """
    name = triggers.input_name
    by_name = {} if name is None else {name: value}
    if (mismatch := find_argument_mismatch(triggers.described, by_name)) is not None:
        raise ValueError(f"the data does not fit: {mismatch} ($ are the arguments)")
    return input_of(triggers.described, by_name)
