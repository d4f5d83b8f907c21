"""The triggers of a flow: those of its document as the engine knows them, and the arguments of the runs that they
start.

The condition and the input of a trigger are evaluated where an event is taken, which need not be a process that has the
steps of the flow: the document is enough.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import UNSET

from outlive._cel import Template
from outlive._features.flows.document.inputs import given_input, input_filling, input_schema, vars_here
from outlive._features.flows.document.model import (
    Condition,
    Document,
    Trigger,
    canonical_json,
    from_canonical,
    hmac_of,
    seconds_of,
)
from outlive._features.flows.document.references import compile_value, expression_errors
from outlive._features.schedules.in_code import cron, tick
from outlive._features.schedules.schedule import ScheduleSpec, schedule_names
from outlive._kernel.client.slices import in_slices
from outlive._kernel.journal.described import Described
from outlive._kernel.model.trigger import EventTrigger, SecretName, TriggerSet, WebhookTrigger
from outlive.errors import InvalidArgumentError
from outlive.errors.document import FlowError, Problem
from outlive.errors.program import ExpressionError
from outlive.telemetry import log

_TIME = "event.time"
"""The one thing that the input of a schedule may ask for: the time of the tick."""


def triggers_in(document: Document) -> TriggerSet:
    """The events and webhooks that start a flow."""
    events, webhooks = [], []
    for each in document.triggers:
        condition = _text_of(each.if_)
        if each.event is not None:
            events.append(EventTrigger(event=each.event, condition=condition, input=each.input))
        elif each.webhook is not None:
            signed = hmac_of(each)
            webhooks.append(
                WebhookTrigger(
                    path=each.webhook,
                    condition=condition,
                    input=each.input,
                    token=_secret(document, each.token),
                    hmac=_secret(document, None if signed is None else signed.key),
                    layout="standard" if signed is None else signed.layout,
                )
            )
    if not events and not webhooks:
        return TriggerSet()
    return TriggerSet(events=tuple(events), webhooks=tuple(webhooks), document=canonical_json(document))


def described_as(document: Document) -> Described:
    """The description by which a process starts a flow without its steps."""
    return Described(
        arguments={"type": "object", "properties": {"input": {}}},
        timeout_seconds=None if document.timeout is None else seconds_of(document.timeout),
        queue=document.queue or "",
    )


def _text_of(condition: Condition | None) -> str:
    if condition is None or condition is True:
        return ""
    text = "false" if condition is False else condition
    return text if "${{" in text else f"${{{{ {text} }}}}"


def _secret(document: Document, name: str | None) -> SecretName | None:
    if name is None:
        return None
    variable = document.vars.get(name)
    return SecretName(name, None if variable is None else variable.env)


# -- When an event has come --------------------------------------------------------------------------------


def holds(condition: str, scope: dict[str, Any]) -> bool:
    """Whether the condition of a trigger is true.

    Raises:
        ExpressionError: it cannot be evaluated.
        ValueError: it is neither true nor false.
    """
    with expression_errors():
        found = _compiled(condition).render(scope)
    if found is True or found is False:
        return found
    raise ValueError(f"the condition of its trigger is {found!r}, and neither true nor false")


def mapped(value: Any, scope: dict[str, Any]) -> Any:
    """The input of a run, by the mapping of its trigger.

    Raises:
        ExpressionError: it cannot be evaluated.
    """
    with expression_errors():
        return _compiled(msgspec.json.encode(value)).render(scope)


@lru_cache(maxsize=1024)
def _compiled(value: str | bytes) -> Template:
    return compile_value(value if isinstance(value, str) else msgspec.json.decode(value))


async def arguments_for(document: bytes, value: Any, *, drop_unknown: bool) -> bytes:
    """The arguments of a run of a flow, as a journal has them. `drop_unknown`: the data of an event has more fields
    than a flow asks for, as it is not written for one flow alone. Others have their turn while it is checked.

    Raises:
        FlowInputError: it is not what the flow takes, or this process has no value of a variable.
    """
    flow = _document(document)
    taken = await in_slices(input_filling(flow, value, drop_unknown=drop_unknown))
    values = vars_here(flow, {})
    return msgspec.json.encode({"a": [taken], "k": {"vars": values}} if values else [taken])


@lru_cache(maxsize=256)
def _document(canonical: bytes) -> Document:
    return from_canonical(canonical)


# -- When it is time ---------------------------------------------------------------------------------------


def schedules_in(document: Document) -> list[ScheduleSpec]:
    """The schedules of a flow: the first has its name, the others a number behind that.

    Raises:
        FlowError: one cannot be a schedule.
        FlowInputError: there is no value of a variable.
    """
    has_schedules = any(trigger.schedule is not None for trigger in document.triggers)
    values = vars_here(document, {}) if has_schedules else {}
    found: list[ScheduleSpec] = []
    names = schedule_names(document.name)
    for index, trigger in enumerate(document.triggers):
        if trigger.schedule is None or _missing_in(document, trigger):
            continue
        try:
            if len(found) == len(names):
                raise ValueError(f"a flow may have {len(names)} schedules; make another flow of the rest")
            found.append(_schedule(document, trigger, names[len(found)], values))
        except (ValueError, ExpressionError) as error:
            path = ("triggers", index, "schedule" if isinstance(error, InvalidArgumentError) else "input")
            raise FlowError([Problem(code="trigger", message=str(error), path=path)]) from None
    return found


def warn_of_idle(document: Document) -> None:
    """Say which schedules of a flow never fire."""
    for trigger in document.triggers:
        if trigger.schedule is not None and (missing := _missing_in(document, trigger)):
            said = "the schedule %s of flow %s never fires: it gives the flow no %s"
            log.warning(said, trigger.schedule, document.name, " and no ".join(missing))


def _missing_in(document: Document, trigger: Trigger) -> list[str]:
    """The required inputs of a flow, if the document does not say what its schedule gives; a check warns of them
    too."""
    return input_schema(document).get("required", []) if trigger.input is UNSET else []


def _schedule(document: Document, trigger: Trigger, name: str, values: dict[str, Any]) -> ScheduleSpec:
    given = {} if trigger.input is UNSET else trigger.input
    # Checked with a time that is not a tick; the defaults are filled in when a run begins.
    given_input(document, mapped(given, {"event": {"time": "2026-01-01T00:00:00Z"}}))
    args: dict[str, Any] = {"input": _with_ticks(given)}
    return cron(
        trigger.schedule or "",
        name=name,
        tz=trigger.timezone,
        overlap=trigger.overlap,
        catch_up=trigger.catch_up,
        args=args | ({"vars": values} if values else {}),
    )


def _with_ticks(value: Any) -> Any:
    """A value with marks where the time of the tick belongs.

    Raises:
        ValueError: it asks for something else.
    """
    if isinstance(value, dict):
        return {key: _with_ticks(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_ticks(each) for each in value]
    if not isinstance(value, str) or "${{" not in value:
        return value
    template = _compiled(value)
    if template.is_constant:
        return template.render({})
    is_whole = value.startswith("${{") and value.endswith("}}")
    if is_whole and [each.text.strip() for _, each in template.expressions] == [_TIME]:
        return tick
    raise ValueError(
        f'{value!r}: of a schedule only the time of the tick is known; write "${{{{ event.time }}}}" alone'
    )
