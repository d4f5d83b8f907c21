"""An example of every error, made from the signature of its class."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from outlive._kernel.journal.failure import failure_of
from outlive.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    InvalidSettingsError,
    OutliveError,
    RunExistsError,
    RunNotFoundError,
    ToleranceExceededError,
)
from outlive.errors.known import ERRORS
from outlive.errors.program import NotDurableError, SettingProblem, SplitFailedError
from outlive.errors.run import AskFailedError, SignalsRefusedError, StartsRefusedError
from outlive.flow import FlowError, FlowInputError, Problem

_PROBLEM = Problem(code="bad", message="it is bad", path=("steps", 0), line=3, suggestion="write it well")
_MADE: dict[type[OutliveError], Callable[[], OutliveError]] = {
    ArgumentTypeError: lambda: ArgumentTypeError("engine.list", "limit", "x", "give a number"),
    AskFailedError: lambda: AskFailedError("a", "b", "c", failure_of(ValueError("no"))),
    FlowError: lambda: FlowError([_PROBLEM], "a.yaml"),
    FlowInputError: lambda: FlowInputError("orders", [_PROBLEM]),
    InvalidArgumentError: lambda: InvalidArgumentError("engine.list", "limit", -1, "give a number"),
    InvalidSettingsError: lambda: InvalidSettingsError([SettingProblem("a.toml:1", "store", "is wrong")]),
    NotDurableError: lambda: NotDurableError("a thread"),
    SplitFailedError: lambda: SplitFailedError("m", "S", join="all", succeeded=["a"], errors={}, is_late=False),
    SignalsRefusedError: lambda: SignalsRefusedError(2, {1: RunNotFoundError("b")}),
    StartsRefusedError: lambda: StartsRefusedError(["a", "b"], {1: RunExistsError("b", "failed")}),
    ToleranceExceededError: lambda: ToleranceExceededError({1: ValueError("no")}, "none"),
}
_FILLED: tuple[tuple[str, Any], ...] = (
    ("Sequence[int]", [1, 2]),
    ("list[int]", [1, 2]),
    ("Sequence", ["first", "second"]),
    ("Iterable", ["first", "second"]),
    ("list", ["first", "second"]),
    ("tuple", ("first", "second")),
    ("dict", {}),
    ("bool", True),
    ("int", 7),
    ("float", 1.5),
)
EVERY: dict[str, type[OutliveError]] = ERRORS | {kind.__name__: kind for kind in (FlowError, FlowInputError)}


def example_of(kind: type[OutliveError]) -> OutliveError:
    """One error of a class, with facts."""
    if kind in _MADE:
        return _MADE[kind]()
    if not inspect.isfunction(kind.__init__):
        return kind("it is so")
    given: list[Any] = []
    named: dict[str, Any] = {}
    for name, it in inspect.signature(kind).parameters.items():
        if it.kind in (it.VAR_POSITIONAL, it.VAR_KEYWORD):
            continue
        value = next((value for begin, value in _FILLED if str(it.annotation).startswith(begin)), f"some {name}")
        if it.kind is it.KEYWORD_ONLY:
            named[name] = value
        else:
            given.append(value)
    return kind(*given, **named)
