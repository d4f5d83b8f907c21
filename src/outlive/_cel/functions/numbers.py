"""Functions of numbers."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from math import isfinite
from typing import Any

from outlive._cel.errors import ExpressionError
from outlive._cel.functions.arguments import as_list, as_number, as_whole, in_range
from outlive._cel.functions.table import Table
from outlive._cel.types import ANY, LIST, NUMBER
from outlive._cel.values import Frame, less

_EXACT = Context(prec=50)


_functions = Table()
FUNCTIONS = _functions.named


@_functions.add("abs(x)", "without its sign", NUMBER, gives=NUMBER)
def _abs(frame: Frame, value: Any) -> int | float:
    number = abs(as_number(value))
    return in_range(number) if type(number) is int else number


def _rounding(mode: str) -> Callable[..., int | float]:
    def run(frame: Frame, value: Any, digits: Any = 0) -> int | float:
        number, places = as_number(value), as_whole(digits)
        if not 0 <= places <= 15:
            raise ExpressionError(f"it rounds to 0 to 15 digits behind the point, and this is {places}")
        if type(number) is int:
            return in_range(number)
        # By the digits that people see: 2.675 is rounded to 2.68, though its double is a little less.
        exact = Decimal(repr(number))
        if abs(number) >= 1e15:
            return in_range(int(exact)) if places == 0 else number
        rounded = exact.quantize(Decimal(1).scaleb(-places), mode, _EXACT)
        return float(rounded) if places else int(rounded)

    return run


_functions.add(
    "round(x, digits)",
    "to the nearest, halves away from zero; without digits an integer",
    NUMBER,
    NUMBER,
    gives=NUMBER,
    least=1,
)(_rounding(ROUND_HALF_UP))


_functions.add("floor(x)", "the next smaller integer", NUMBER, gives=NUMBER)(_rounding(ROUND_FLOOR))


_functions.add("ceil(x)", "the next larger integer", NUMBER, gives=NUMBER)(_rounding(ROUND_CEILING))


def _values_of(frame: Frame, given: tuple[Any, ...]) -> list[Any]:
    values = as_list(given[0]) if len(given) == 1 and type(given[0]) is list else list(given)
    frame.items(len(values))
    if not values:
        raise ExpressionError("it needs at least one value", suggestion="look at size(list) first")
    return values


@_functions.add("min(list) or min(a, b)", "the smallest", ANY, gives=ANY, most=100)
def _min(frame: Frame, *given: Any) -> Any:
    first, *others = _values_of(frame, given)
    for other in others:
        first = other if less(frame, other, first) else first
    return first


@_functions.add("max(list) or max(a, b)", "the largest", ANY, gives=ANY, most=100)
def _max(frame: Frame, *given: Any) -> Any:
    first, *others = _values_of(frame, given)
    for other in others:
        first = other if less(frame, first, other) else first
    return first


@_functions.add("list.sum()", "all numbers together; of nothing 0", LIST(NUMBER), gives=NUMBER)
def _sum(frame: Frame, items: Any) -> int | float:
    frame.items(len(as_list(items)))
    total: int | float = 0
    for item in items:
        try:
            total = total + as_number(item)
        except OverflowError:
            total = float("inf")
        if type(total) is float and not isfinite(total):
            raise ExpressionError("the result is not a finite number")
    return in_range(total) if type(total) is int else total
