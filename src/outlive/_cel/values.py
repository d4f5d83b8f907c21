"""Plain data as expressions see it: what it is called, whether it is equal, how it is ordered, how large it is.

Only `dict` (with text keys), `list`, `str`, `int`, `float`, `bool` and `None` have a meaning. A value is looked at by
its exact type and never asked for an attribute, so nothing that Python hangs on an object can be reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

from outlive._cel.errors import ExpressionError
from outlive._cel.tokens import INT_MAX, INT_MIN

FUEL = 10_000
"""How many steps one evaluation may take."""
CHARACTERS_PER_FUEL = 1024
"""How many characters of text are read or written for one step."""
ITEMS_PER_FUEL = 8
"""How many elements a function looks at for one step, and how many operations a macro does."""
OUTPUT_MAX = 1024 * 1024
"""Bytes, about, of what one expression or text may make."""
BYTES_PER_VALUE = 5
"""The size of a value in a list or a map, besides its text: about its size in JSON."""
DATA_DEPTH_MAX = 100
"""How deeply nested data may be that is compared, written as text or made."""

_NAMES = {
    dict: "map",
    list: "list",
    str: "string",
    int: "int",
    float: "double",
    bool: "bool",
    type(None): "null",
}


class MissingError(ExpressionError):
    """A field, an element or a name that is not there; `has` and `coalesce` catch exactly this."""


class ExpressionLimitError(ExpressionError):
    """An evaluation that took too many steps or made too much; nothing in an expression can catch it."""


class Frame:
    """One evaluation: its scope, the variables of its macros, and how many steps it has left."""

    __slots__ = ("fuel", "scope", "variables")

    def __init__(self, scope: Mapping[str, Any], variables: int) -> None:
        self.scope = scope
        self.fuel = FUEL
        self.variables: list[Any] = [None] * variables

    def spend(self, steps: int) -> None:
        """Use up steps.

        Raises:
            ExpressionLimitError: there are not so many left.
        """
        self.fuel -= steps
        if self.fuel < 0:
            raise ExpressionLimitError(
                f"it takes more than {FUEL:,} steps",
                suggestion="move the work into a step, or over the elements of a list with `use: map`",
            )

    def read_text(self, *texts: str) -> None:
        """Use up what looking at texts costs."""
        self.spend(sum(map(len, texts)) // CHARACTERS_PER_FUEL)

    def made(self, text: str) -> str:
        """Use up what a new text costs, and refuse one that is too large."""
        refuse_length(len(text))
        self.spend(len(text) // CHARACTERS_PER_FUEL)
        return text

    def items(self, count: int) -> None:
        """Use up what looking at elements costs."""
        self.spend(count // ITEMS_PER_FUEL)


def refuse_length(characters: int) -> None:
    """Refuse to make a text that is too large, before it is made."""
    if characters > OUTPUT_MAX:
        raise ExpressionLimitError(f"it makes a text of {characters:,} characters and {OUTPUT_MAX:,} are allowed")


def type_name(value: Any) -> str:
    """The name of the type of a value, for people."""
    return _NAMES.get(type(value), f"a Python {type(value).__name__}, which is not plain data")


def shown(value: Any) -> str:
    """A value for messages: its type, and itself where it is short."""
    kind = type(value)
    if kind is str:
        return f"the string {value!r}" if len(value) <= 40 else f"a string of {len(value)} characters"
    if kind is dict or kind is list:
        return f"a {_NAMES[kind]} of {len(value)}"
    if value is None or kind is bool:
        return {None: "null", True: "true", False: "false"}[value]
    if kind is int:
        return f"the number {value}" if INT_MIN <= value <= INT_MAX else "an integer of more than 64 bits"
    return f"the number {value}" if kind is float else type_name(value)


def is_number(value: Any) -> bool:
    """Whether it is an int or a double, and no bool."""
    kind = type(value)
    return kind is int or kind is float


def equal(frame: Frame, left: Any, right: Any, depth: int = 0) -> bool:
    """Equality of CEL: of numbers by value, of everything else within one type; never an error."""
    kind = type(left)
    if kind is not type(right):
        return is_number(left) and is_number(right) and bool(left == right)
    if kind is dict or kind is list:
        if len(left) != len(right):
            return False
        if depth >= DATA_DEPTH_MAX:
            raise ExpressionLimitError(f"it compares data that is nested more than {DATA_DEPTH_MAX} deep")
        frame.items(len(left) + ITEMS_PER_FUEL)
        if kind is list:
            return all(equal(frame, a, b, depth + 1) for a, b in zip(left, right, strict=True))
        return all(key in right and equal(frame, left[key], right[key], depth + 1) for key in left)
    if kind is str and len(left) == len(right) > CHARACTERS_PER_FUEL:
        frame.read_text(left)
    return kind in _NAMES and bool(left == right)


def less(frame: Frame, left: Any, right: Any) -> bool:
    """Whether one is before the other: numbers, texts and bools have an order."""
    kind = type(left)
    if kind is type(right):
        if kind is str:
            frame.read_text(left)
            return bool(left < right)
        if kind is bool or kind is int or kind is float:
            return bool(left < right)
    elif is_number(left) and is_number(right):
        return bool(left < right)
    raise ExpressionError(f"{shown(left)} and {shown(right)} have no order", suggestion=_order_advice(left, right))


def _order_advice(left: Any, right: Any) -> str:
    if {type(left), type(right)} & {int, float} and str in {type(left), type(right)}:
        return "write int(x), double(x) or string(x)"
    return "write coalesce(x, 0)" if left is None or right is None else ""


def key_of(frame: Frame, value: Any, depth: int = 0) -> Any:
    """Something hashable that is equal for equal values only."""
    kind = type(value)
    if kind is int or kind is float:
        return value
    if kind is str:
        frame.read_text(value)
        return ("string", value)
    if kind is dict or kind is list:
        if depth >= DATA_DEPTH_MAX:
            raise ExpressionLimitError(f"it compares data that is nested more than {DATA_DEPTH_MAX} deep")
        frame.items(len(value) + ITEMS_PER_FUEL)
        if kind is list:
            return ("list", *[key_of(frame, item, depth + 1) for item in value])
        return ("map", frozenset((key, key_of(frame, item, depth + 1)) for key, item in value.items()))
    return (type_name(value), value if kind is bool else None)


def text_of(value: Any) -> str:
    """A bool, number or text as text: what `string(x)` gives."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        if not INT_MIN <= value <= INT_MAX:
            raise ExpressionError("an integer of more than 64 bits has no text")
        return str(value)
    if kind is float:
        return number_text(value)
    raise ExpressionError(f"{shown(value)} has no text", suggestion="write toJson(x), or coalesce(x, '')")


def number_text(value: float) -> str:
    """A double as CEL writes it: 1 and not 1.0, where it is whole and small."""
    if value == int(value) if isfinite(value) else False:
        return str(int(value)) if abs(value) < 1e15 else repr(value)
    return repr(value)


def json_of(frame: Frame, value: Any) -> str:
    """Compact JSON, with the keys of maps in order."""
    parts: list[str] = []
    _write_json(frame, value, parts, 0)
    return frame.made("".join(parts))


def _write_json(frame: Frame, value: Any, parts: list[str], depth: int) -> None:
    kind = type(value)
    if kind is str:
        frame.spend(1 + len(value) // CHARACTERS_PER_FUEL if len(value) > CHARACTERS_PER_FUEL else 0)
        refuse_length(len(value))
        parts.append(encode_basestring(value))
    elif value is None or kind is bool:
        parts.append("null" if value is None else "true" if value else "false")
    elif kind is int:
        parts.append(text_of(value))
    elif kind is float and isfinite(value):
        parts.append(repr(value))
    elif kind is list or kind is dict:
        if depth >= DATA_DEPTH_MAX:
            raise ExpressionLimitError(f"it writes data that is nested more than {DATA_DEPTH_MAX} deep")
        frame.items(len(value) + ITEMS_PER_FUEL)
        parts.append("[" if kind is list else "{")
        for number, item in enumerate(value if kind is list else sorted(value)):
            if number:
                parts.append(",")
            if kind is dict:
                parts.append(f"{encode_basestring(item)}:")
                item = value[item]  # noqa: PLW2901
            _write_json(frame, item, parts, depth + 1)
        parts.append("]" if kind is list else "}")
    else:
        raise ExpressionError(f"{shown(value)} has no JSON")


def refuse_size(value: Any) -> None:
    """Refuse a made value whose JSON would be larger than an expression may make, or deeper."""
    left = [(value, 1)]
    total = 0
    while left:
        item, depth = left.pop()
        kind = type(item)
        if kind is str:
            total += len(item) if item.isascii() else len(item) * 4
        elif kind is list or kind is dict:
            # Counted before they are looked at: a list of a million numbers is too much without a look at each.
            total += 2 + BYTES_PER_VALUE * len(item)
            if depth > DATA_DEPTH_MAX:
                raise ExpressionLimitError(f"it makes data that is nested more than {DATA_DEPTH_MAX} deep")
            if total <= OUTPUT_MAX:
                if kind is dict:
                    total += sum(len(key) for key in item if type(key) is str)
                    item = list(item.values())
                left += [(each, depth + 1) for each in item]
        elif kind not in _NAMES:
            raise ExpressionError(f"it makes {type_name(item)}")
        if total > OUTPUT_MAX:
            raise ExpressionLimitError(f"it makes more than {OUTPUT_MAX:,} bytes")
