"""Finds the mistakes in the declarations of a document around its steps: input, variables, triggers, policies and
tests."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

from msgspec import UNSET

from outlive._features.flows.document.inputs import (
    LOOKS_OF_DOCUMENT_MAX,
    Looks,
    filled,
    input_schema,
    schema_problems,
    variable_schema,
)
from outlive._features.flows.document.model import (
    Case,
    Document,
    Mock,
    MockCase,
    RetryPolicy,
    Trigger,
    Variable,
    hmac_of,
    seconds_of,
)
from outlive._features.flows.document.problems import PROBLEMS_LOOKED_FOR, did_you_mean
from outlive._features.flows.document.references import compile_value
from outlive._features.schedules.schedule import CATCH_UP_MAX
from outlive._features.schedules.ticks import checked_cron, zone_of
from outlive._kernel.model.given import SECONDS_MAX
from outlive._kernel.model.queue import check_queue
from outlive._kernel.model.trigger import is_pattern
from outlive.errors import InvalidArgumentError
from outlive.errors.document import Path, Problem, dotted

_WEBHOOK = re.compile(r"(/[A-Za-z0-9._~-]+)+")
_KINDS = ("event", "schedule", "webhook", "manual")
_ONLY_FOR = {
    "timezone": ("schedule",),
    "overlap": ("schedule",),
    "catch_up": ("schedule",),
    "token": ("webhook",),
    "hmac": ("webhook",),
    "if": ("event", "webhook"),
}


def problems_of(document: Document) -> Iterator[Problem]:
    """Everything that is wrong with them. All values in a document share one number of looks."""
    looks = Looks(LOOKS_OF_DOCUMENT_MAX)
    of_input = list(islice(_of_input(document, looks), PROBLEMS_LOOKED_FOR))
    yield from of_input
    of_variables = {name: list(_of_schema(each, ("vars", name), looks)) for name, each in document.vars.items()}
    yield from _of_variables(document, of_variables, looks)
    # Nothing can be held against a schema that is wrong itself.
    schema = {} if of_input else input_schema(document)
    sound_vars = {name for name, wrong in of_variables.items() if not wrong}
    yield from _of_span(document.timeout, ("timeout",))
    yield from _of_queue(document.queue, ("queue",))
    if document.retry is not None:
        yield from _of_retry(document.retry, ("retry",))
    yield from _of_steps(document)
    yield from secret_addresses(document)
    for index, trigger in enumerate(document.triggers):
        yield from _of_trigger(document, trigger, ("triggers", index), schema, looks)
    names: dict[str, int] = {}
    for index, case in enumerate(document.tests):
        path: Path = ("tests", index)
        if case.name in names:
            message = f"two tests are called {case.name!r}, tests[{names[case.name]}] and this one"
            yield _problem("test", message, (*path, "name"), "give each its own name: --case chooses by it")
        names.setdefault(case.name, index)
        yield from _of_case(document, case, path, schema, sound_vars, looks)


def _of_input(document: Document, looks: Looks) -> Iterator[Problem]:
    for name, schema in document.input.items():
        yield from schema_problems(schema, ("input", name), looks=looks, is_property=True)


def _of_schema(variable: Variable, path: Path, looks: Looks) -> Iterator[Problem]:
    if variable.type is not None:
        yield from schema_problems(variable.type, (*path, "type"), looks=looks)
    if variable.schema is not None:
        yield from schema_problems(variable.schema, (*path, "schema"), looks=looks)


def _of_variables(document: Document, of_schemas: Mapping[str, list[Problem]], looks: Looks) -> Iterator[Problem]:
    for name, variable in document.vars.items():
        path: Path = ("vars", name)
        schema = variable_schema(variable)
        wrong = of_schemas[name]
        yield from wrong
        if variable.default is not UNSET:
            if variable.secret:
                message = f"{dotted(path)} is a secret with a default, which everyone who reads the flow knows"
                yield _problem("secret", message, (*path, "default"), "remove the default; set `env`")
            elif not wrong:
                yield from filled(schema, variable.default, (*path, "default"), looks=looks)[1]


def secret_addresses(document: Document) -> Iterator[Problem]:
    """A warning for each secret that goes where a start says, and that the settings here bind to no server."""
    from outlive._features.flows.outside.addresses import secrets_by_start

    by_start = secrets_by_start(document)
    if not by_start:
        return
    from outlive._features.flows.outside import settings  # It brings a client for HTTP, which few flows need at once.

    for name, id in by_start.items():
        if settings.current().bounds_of(name).places is None:
            message = f"step {id} takes the secret {name} where the start of a run says, and fails"
            advice = f"let the operator list servers in [flows.grants.{name}] hosts, or name the server in the document"
            yield Problem(
                code="secret-address",
                message=message,
                path=("steps", id, "with"),
                suggestion=advice,
                is_warning=True,
            )


def _of_steps(document: Document) -> Iterator[Problem]:
    for id, step in document.steps.items():
        path: Path = ("steps", id)
        yield from _of_span(step.timeout, (*path, "timeout"))
        yield from _of_span(step.heartbeat_timeout, (*path, "heartbeat_timeout"))
        if step.retry is not None:
            yield from _of_retry(step.retry, (*path, "retry"))
        on_error = step.on_error
        if not isinstance(on_error, str):
            given = [name for name in ("use_default", "retry") if getattr(on_error, name) is not UNSET]
            if len(given) != 1:
                message = f"{dotted((*path, 'on_error'))} has {' and '.join(given) or 'neither'}"
                yield _problem("on-error", message, (*path, "on_error"), "give either use_default or retry")
            if on_error.retry is not UNSET:
                yield from _of_retry(on_error.retry, (*path, "on_error", "retry"))
                if step.retry is not None:
                    message = f"step {id} says twice how to retry, in `retry` and in `on_error`"
                    yield _problem("on-error", message, (*path, "on_error", "retry"), "keep one of the two")
        yield from _of_queue(step.queue, (*path, "queue"))
        if step.once and (step.retry is not None or not (isinstance(on_error, str) or on_error.retry is UNSET)):
            message = f"step {id} is called once, so it cannot be tried again"
            yield _problem("once", message, (*path, "once"), "remove `once` or the retry")


def _of_retry(retry: RetryPolicy, path: Path) -> Iterator[Problem]:
    for name in ("first", "cap", "elapsed_max"):
        yield from _of_span(getattr(retry, name), (*path, name), or_zero=True)
    if seconds_of(retry.first) > seconds_of(retry.cap):
        first, cap = _shown(retry.first), _shown(retry.cap)
        message = f"{dotted((*path, 'first'))} is {first}, longer than `cap`, the longest delay: {cap}"
        yield _problem("value", message, (*path, "first"), "make `cap` longer")
    for name, errors in (("on", retry.on), ("not_on", retry.not_on)):
        for index, each in enumerate(errors):
            is_status = isinstance(each, int) or each.isdigit()
            if is_status and not 100 <= int(each) <= 599:
                message = f"{each} is not an HTTP status; expected 100 to 599, or the name of an error type"
                yield _problem("value", message, (*path, name, index))


def _shown(span: float | str) -> str:
    return span if isinstance(span, str) else f"{span:g}s"


def _of_span(span: float | str | None, path: Path, *, or_zero: bool = False) -> Iterator[Problem]:
    if span is None:
        return
    seconds = seconds_of(span)
    if seconds == 0 and not or_zero:
        yield _problem(
            "value", f"{dotted(path)} is {_shown(span)}; expected more than 0", path, "remove it for no limit"
        )
    if seconds > SECONDS_MAX:
        yield _problem("value", f"{dotted(path)} is {_shown(span)}, longer than 100 years", path)


# -- Triggers ----------------------------------------------------------------------------------------------------------


def _of_trigger(
    document: Document, trigger: Trigger, path: Path, schema: Mapping[str, Any], looks: Looks
) -> Iterator[Problem]:
    kinds = [name for name in _KINDS if getattr(trigger, name)]
    if len(kinds) != 1:
        message = f"{dotted(path)} is {' and '.join(kinds) or 'empty'}; expected exactly one of {', '.join(_KINDS)}"
        yield _problem("trigger", message, path, "write one trigger for each" if kinds else "")
        return
    (kind,) = kinds
    default = Trigger()
    for name, allowed in _ONLY_FOR.items():
        field = "if_" if name == "if" else name
        if getattr(trigger, field) != getattr(default, field) and kind not in allowed:
            message = f"`{name}` is for {' and '.join(allowed)}, and {dotted(path)} is for {kind}"
            yield _problem("trigger", message, (*path, name), "remove it")
    if trigger.schedule is not None:
        yield from _of_schedule(trigger, trigger.schedule, path)
    if trigger.event is not None and not is_pattern(trigger.event):
        message = f"{dotted((*path, 'event'))} is {trigger.event!r}; `*` stands at the end, as in order.* or alone"
        yield _problem("trigger", message, (*path, "event"))
    yield from _of_mapping(document, trigger, path, schema, looks)
    if trigger.webhook is not None and not _WEBHOOK.fullmatch(trigger.webhook):
        message = f"{dotted((*path, 'webhook'))} is {trigger.webhook!r}; expected a path such as /hooks/orders"
        yield _problem("trigger", message, (*path, "webhook"))
    signed = hmac_of(trigger)
    for name, variable in (("token", trigger.token), ("hmac", None if signed is None else signed.key)):
        if variable is None or kind != "webhook":
            continue
        if variable not in document.vars:
            message = f"there is no variable {variable}; `{name}` names the secret variable that has it"
            yield _problem("trigger", message, (*path, name), did_you_mean(variable, document.vars))
        elif not document.vars[variable].secret:
            message = f"vars.{variable} is not a secret, and `{name}` needs one"
            yield _problem("trigger", message, (*path, name), "give the variable `secret: true`")


def _of_mapping(
    document: Document, trigger: Trigger, path: Path, schema: Mapping[str, Any], looks: Looks
) -> Iterator[Problem]:
    """Whether the flow takes what its trigger gives, as far as that is written out. What an event has is not known."""
    given = {} if trigger.input is UNSET and trigger.schedule is not None else trigger.input
    if not schema or not isinstance(given, dict) or any(key[:1] == "$" for key in given):
        return
    own = (*path, "input")
    for name, value in given.items():
        if name not in document.input:
            message = f"{dotted((*own, name))} is not known: the flow has no such input"
            yield _problem("trigger", message, (*own, name), did_you_mean(name, document.input))
        elif compile_value(value, []).is_constant:
            constant = compile_value(value, []).render({})
            yield from filled(schema["properties"][name], constant, (*own, name), looks=looks)[1]
    missing = [name for name in schema["required"] if name not in given]
    if missing and trigger.input is UNSET:
        message = f"{dotted(path)} never fires: it gives the flow no {' and no '.join(missing)}"
        yield Problem(
            code="trigger", message=message, path=path, suggestion="give the trigger an `input`", is_warning=True
        )
    elif missing:
        message = f"{dotted(path)} gives the flow no {' and no '.join(missing)}"
        yield _problem("trigger", message, own, "give a value in `input` of the trigger, or a default to the input")


def _of_queue(queue: str | None, path: Path) -> Iterator[Problem]:
    try:
        check_queue("", queue)
    except InvalidArgumentError as error:
        yield _problem("value", f"{dotted(path)} is {queue!r}; {error.wanted}", path)


def _of_schedule(trigger: Trigger, expression: str, path: Path) -> Iterator[Problem]:
    try:
        checked_cron(expression)
    except ValueError as error:
        message = f"{dotted((*path, 'schedule'))} is {expression!r}: {error}"
        yield _problem("schedule", message, (*path, "schedule"), "for example 0 6 * * 1-5")
    try:
        zone_of(trigger.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"{dotted((*path, 'timezone'))} is {trigger.timezone!r}, a time zone that this machine does not know"
        yield _problem("schedule", message, (*path, "timezone"), "for example Europe/Stockholm")
    if isinstance(trigger.catch_up, int) and trigger.catch_up > CATCH_UP_MAX:
        message = f"{dotted((*path, 'catch_up'))} is {trigger.catch_up}; {CATCH_UP_MAX} are the most"
        yield _problem("schedule", message, (*path, "catch_up"))


# -- Tests -------------------------------------------------------------------------------------------------------------


def _of_case(
    document: Document, case: Case, path: Path, schema: Mapping[str, Any], sound_vars: Collection[str], looks: Looks
) -> Iterator[Problem]:
    for field in ("mocks", "steps", "approvals", "overrides"):
        for id in getattr(case, field):
            if id not in document.steps:
                message = f"there is no step {id}"
                yield _problem("test", message, (*path, field, id), did_you_mean(id, document.steps))
    for id, mock in case.mocks.items():
        if not mock.when or _answers(mock):
            yield from _of_answer(f"the mock of {id}", mock, (*path, "mocks", id))
        for index, each in enumerate(mock.when):
            yield from _of_answer(f"answer {index + 1} of the mock of {id}", each, (*path, "mocks", id, "when", index))
    if case.output is not UNSET and case.error is not UNSET:
        message = f"test {case.name!r} expects an output and an error"
        yield _problem("test", message, path, "keep one of the two")
    if schema:
        yield from filled(schema, case.input, (*path, "input"), looks=looks)[1]
    for name, value in case.vars.items():
        variable = document.vars.get(name)
        if variable is None:
            message = f"there is no variable {name}"
            yield _problem("test", message, (*path, "vars", name), did_you_mean(name, document.vars))
        elif name in sound_vars:
            yield from filled(variable_schema(variable), value, (*path, "vars", name), looks=looks)[1]
    for index, signal in enumerate(case.signals):
        yield from _of_span(signal.after, (*path, "signals", index, "after"), or_zero=True)
    if case.now is not None and not _is_instant(case.now):
        message = f"{dotted((*path, 'now'))} is {case.now!r}; expected a time with its offset"
        yield _problem("test", message, (*path, "now"), "for example 2026-01-31T06:00:00Z")


def _answers(mock: Mock | MockCase) -> list[str]:
    return [name for name in ("result", "error") if getattr(mock, name) is not UNSET]


def _of_answer(what: str, mock: Mock | MockCase, path: Path) -> Iterator[Problem]:
    given = _answers(mock)
    if len(given) != 1:
        message = f"{what} has {' and '.join(given) or 'neither'}; expected either result or error"
        yield _problem("test", message, path)


def _is_instant(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _problem(code: str, message: str, path: Path, suggestion: str = "") -> Problem:
    return Problem(code=code, message=message, path=path, suggestion=suggestion)
