"""Built-ins that wait and decide: `noop`, `log`, `sleep`, `switch`, `fail`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from outlive._cel import ANY, NULL, Template, case_of
from outlive._features.flows.built_in.contract import BuiltIn, Call, OneOf
from outlive._features.flows.document.model import ERROR, INSTANT, Span, seconds_of
from outlive._features.flows.document.references import compile_cases
from outlive._kernel.define.in_run import sleep_until
from outlive._kernel.define.logger import get_logger
from outlive._kernel.journal.failure import exception_of
from outlive._kernel.model import Failure
from outlive.errors.step import FlowStepError


class Anything(msgspec.Struct, frozen=True):
    """The arguments of a built-in that takes anything."""


class Noop:
    """Does nothing; its result is what it is given."""

    name = "noop"
    arguments = Anything
    takes_anything = True
    is_control = True
    result = ANY

    async def run(self, call: Call, given: Any) -> Any:
        """See `BuiltIn`."""
        return given


class LogArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `log`."""

    message: str
    level: Literal["debug", "info", "warning", "error"] = "info"
    fields: dict[str, Any] = {}
    """Shown behind the message."""


class Log:
    """Writes a line to the log of the worker, once: not again in a replay."""

    name = "log"
    arguments = LogArguments
    is_control = True
    result = NULL

    async def run(self, call: Call, given: LogArguments) -> None:
        """See `BuiltIn`."""
        shown = "".join(f" {name}={value!r}" for name, value in given.fields.items())
        get_logger("outlive.flow").log(_LEVELS[given.level], "%s: %s%s", call.id, given.message, shown)


_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class SleepArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `sleep`: one of the two."""

    seconds: Span | None = None
    """How long: `5m`, or a number of seconds."""
    until: Annotated[str, Meta(pattern=INSTANT)] | None = None
    """An instant: `2026-01-31T06:00:00Z`."""


class Sleep:
    """Waits, durably."""

    name = "sleep"
    arguments = SleepArguments
    one_of = OneOf(("seconds", "until"))
    is_control = True
    result = NULL

    async def run(self, call: Call, given: SleepArguments) -> None:
        """See `BuiltIn`."""
        if (given.seconds is None) == (given.until is None):
            raise FlowStepError(call.id, "give either `seconds` or `until`")
        if given.seconds is not None:
            await asyncio.sleep(seconds_of(given.seconds))
            return
        try:
            when = datetime.fromisoformat(str(given.until))
        except ValueError:
            reason = f"`until` is not an instant: {given.until!r}; write 2026-01-31T06:00:00Z"
            raise FlowStepError(call.id, reason) from None
        await sleep_until(when if when.tzinfo is not None else when.replace(tzinfo=UTC))


class SwitchArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `switch`."""

    on: str | int | bool | None
    """Decides."""
    cases: dict[str, Any]
    """The results, by what `on` is, as text: true and null are "true" and "null"."""
    default: Any = msgspec.UNSET
    """The result if none fits; without it that is a failure."""


class Switch:
    """Chooses one of several values; further steps may say `if` by it."""

    name = "switch"
    arguments = SwitchArguments
    is_control = True
    result = ANY

    def compile(self, given: Any) -> Template | None:
        """The arguments as a template that renders only the chosen case; None if the cases are not written out."""
        cases = given.get("cases") if isinstance(given, dict) else None
        is_written = isinstance(cases, dict) and not any(name.startswith("$") for name in cases)
        return compile_cases(given) if is_written and given.keys() <= {"on", "cases", "default"} else None

    async def run(self, call: Call, given: SwitchArguments) -> Any:
        """See `BuiltIn`."""
        wanted = case_of(given.on)
        if wanted in given.cases:
            return given.cases[wanted]
        if given.default is msgspec.UNSET:
            known = ", ".join(given.cases)
            raise FlowStepError(call.id, f"no case for {wanted!r}, and no `default`; the cases are {known}")
        return given.default


class FailArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `fail`."""

    message: str
    type: Annotated[str, Meta(pattern=ERROR)] = "FlowFailed"
    """The name of the error, for `retry.on`, `on_error` and people."""


class Fail:
    """Fails, with an error of the document's own."""

    name = "fail"
    arguments = FailArguments
    is_control = True
    result = NULL

    async def run(self, call: Call, given: FailArguments) -> None:
        """See `BuiltIn`."""
        raise exception_of(Failure(type=given.type, message=given.message), step=call.id)


BUILT_INS: dict[str, BuiltIn] = {each.name: each for each in (Noop(), Log(), Sleep(), Switch(), Fail())}
