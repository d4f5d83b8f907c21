"""Checks of the arguments of functions: each looks at one value and refuses it with words."""

from __future__ import annotations

from math import isfinite
from typing import Any

from outlive._cel.errors import ExpressionError
from outlive._cel.tokens import INT_MAX, INT_MIN
from outlive._cel.values import is_number, shown


def as_text(value: Any) -> str:
    """A text."""
    if type(value) is not str:
        raise ExpressionError(f"it takes a string, and this is {shown(value)}", suggestion=_text_advice(value))
    return value


def _text_advice(value: Any) -> str:
    return "write string(x)" if is_number(value) else "write coalesce(x, '')" if value is None else ""


def as_list(value: Any) -> list[Any]:
    """A list."""
    if type(value) is not list:
        raise ExpressionError(
            f"it takes a list, and this is {shown(value)}", suggestion="write coalesce(x, [])" if value is None else ""
        )
    return value


def as_map(value: Any) -> dict[str, Any]:
    """A map."""
    if type(value) is not dict:
        raise ExpressionError(
            f"it takes a map, and this is {shown(value)}", suggestion="write coalesce(x, {})" if value is None else ""
        )
    return value


def as_number(value: Any) -> int | float:
    """A finite number."""
    if type(value) is float and not isfinite(value):
        raise ExpressionError("it takes a finite number")
    if type(value) is int or type(value) is float:
        return value
    raise ExpressionError(f"it takes a number, and this is {shown(value)}")


def as_whole(value: Any) -> int:
    """A whole number, also one that is written as 2.0."""
    if type(value) is float and isfinite(value) and value == int(value):
        value = int(value)
    if type(value) is not int:
        raise ExpressionError(f"it takes a whole number, and this is {shown(value)}")
    return int(value)


def in_range(value: int) -> int:
    """An integer of 64 bits."""
    if not INT_MIN <= value <= INT_MAX:
        raise ExpressionError("the result is an integer of more than 64 bits")
    return value


def bounds(count: int, first: Any, end: Any) -> tuple[int, int]:
    """A first and an end within a text or list of so many."""
    start, stop = as_whole(first), count if end is None else as_whole(end)
    if not 0 <= start <= stop <= count:
        raise ExpressionError(f"{start} to {stop} is not within 0 to {count}")
    return start, stop
