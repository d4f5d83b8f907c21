"""What Google's implementation of CEL makes of an expression, and where ours may differ from it."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from importlib import import_module
from typing import Any

from outlive._cel import ExpressionError, parse

_RELAXED = re.compile(
    r"No matching overloads found : "
    r"(_[-+*/%]_\((int64|double), (int64|double)\)"  # we mix integers and doubles, and have a remainder of doubles
    r"|\w+\(|\(\w+\)\.\w+\()"  # x.f(y) is f(x, y)
)

_LARGE = "9223372036854775807"
_EXACT = "9007199254740991"
"""The largest integer that is still itself as a double, with all below it."""


@cache
def _environment() -> Any:
    cel = import_module("cel_expr_python.cel")
    return cel.NewEnv(variables=dict.fromkeys(("input", "steps"), cel.Type.DYN))


def cel_value(text: str, scope: dict[str, Any]) -> tuple[bool, Any]:
    """Whether CEL has a value for an expression, and the value or the message."""
    try:
        value = _environment().compile(text, disable_check=True).eval(data=scope)
    except Exception as error:  # It tells of its errors in more than one way.
        return False, str(error)
    if value.type().name() == "ERROR":
        return False, str(value.value())
    return True, value.plain_value()


def difference(text: str, scope: dict[str, Any]) -> str:
    """What ours makes of it that CEL does not, apart from what the decision record lists; nothing if they agree."""
    found = _difference(text, scope)
    if found and _LARGE in text + json.dumps(scope):
        # Google's CEL compares an integer with a double as doubles, so 2^63 - 1 is 2^63 for it. We compare the numbers.
        return _difference(text.replace(_LARGE, _EXACT), json.loads(json.dumps(scope).replace(_LARGE, _EXACT)))
    return found


def _difference(text: str, scope: dict[str, Any]) -> str:
    has_value, theirs = cel_value(text, scope)
    try:
        ours = parse(text).evaluate(scope)
    except ExpressionError as error:
        # JSON has no infinity: what is infinite or no number in CEL is an error here, at the place where it arises.
        is_infinite = "finite" in error.message or "division by zero" in error.message
        if has_value and not is_infinite:
            return f"CEL has {theirs!r} and we have: {error}"
        return ""
    if has_value:
        return "" if is_same(ours, theirs) else f"CEL has {theirs!r} and we have {ours!r}"
    return "" if _is_relaxed(text, theirs, scope) else f"we have {ours!r} and CEL has: {theirs}"


def _is_relaxed(text: str, complaint: str, scope: dict[str, Any]) -> bool:
    """Whether CEL refuses what we allow. In `a && b` it tells of `a` only, so each bracket is asked about as well."""
    if _RELAXED.search(complaint):
        return True
    asked = (cel_value(bracket, scope) for bracket in _brackets(text))
    return any(not has_value and _RELAXED.search(theirs) for has_value, theirs in asked)


def _brackets(text: str) -> list[str]:
    """Each part of an expression that stands in brackets. One in a text between quotes may cut it wrongly: no harm."""
    opened: list[int] = []
    found = []
    for place, sign in enumerate(text):
        if sign == "(":
            opened.append(place)
        elif sign == ")" and opened:
            found.append(text[opened.pop() : place + 1])
    return found


def is_same(ours: Any, theirs: Any) -> bool:
    """Equal, and of the same type throughout."""
    if type(ours) is not type(theirs):
        return False
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(is_same(ours[key], theirs[key]) for key in ours)
    return bool(ours == theirs) or (isinstance(ours, float) and math.isnan(ours) and math.isnan(theirs))
