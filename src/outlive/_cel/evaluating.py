"""From a tree to a function: each node becomes one Python closure, once, and evaluating calls them.

Nothing is interpreted again at each evaluation and nothing becomes Python source. An operation that fails raises an
`ExpressionError` without a place; the closure around it adds the place of its node.

Steps are counted where work depends on data: for each element that a macro visits and for what functions look at. All
else is bounded by the length of the source.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fmod, isfinite
from typing import Any

from outlive._cel.errors import ExpressionError
from outlive._cel.functions import FUNCTIONS
from outlive._cel.functions.arguments import in_range
from outlive._cel.functions.lists import sorted_by
from outlive._cel.syntax import (
    Call,
    Chain,
    Coalesce,
    Compare,
    Conditional,
    Has,
    Index,
    ListOf,
    Literal,
    Local,
    Logic,
    Macro,
    MapOf,
    Minus,
    Name,
    Node,
    Not,
    Select,
    size,
)
from outlive._cel.values import (
    ITEMS_PER_FUEL,
    ExpressionLimitError,
    Frame,
    MissingError,
    equal,
    is_number,
    less,
    refuse_length,
    shown,
    type_name,
)

Code = Callable[[Frame], Any]
Operation = Callable[[Frame, Any, Any], Any]


def code_of(node: Node) -> Code:
    """The function that gives the value of a node."""
    match node:
        case Literal(value=value):
            return lambda frame: value
        case Name(name=name):
            return _name(name, node.offset)
        case Local(slot=slot):
            return lambda frame: frame.variables[slot]
        case Select() | Index():
            return _path(node)
        case Has(select=select):
            return _has(select)
        case Coalesce(values=values):
            return _coalesce([code_of(each) for each in values])
        case Not(operand=operand):
            return _unary(_not, code_of(operand), node.offset)
        case Minus(operand=operand):
            return _unary(_minus, code_of(operand), node.offset)
        case Chain(first=first, rest=rest):
            return _chain(code_of(first), [(ARITHMETIC[sign], code_of(each)) for sign, each in rest], node.offset)
        case Compare(sign=sign, left=left, right=right):
            return _binary(COMPARISONS[sign], code_of(left), code_of(right), node.offset)
        case Logic(sign=sign, operands=operands):
            return _logic([code_of(each) for each in operands], node.offset, decided_by=sign == "||", sign=sign)
        case Conditional(condition=condition, yes=yes, no=no):
            return _conditional(code_of(condition), code_of(yes), code_of(no), node.offset)
        case ListOf(items=items):
            codes = [code_of(each) for each in items]
            return lambda frame: [code(frame) for code in codes]
        case MapOf(entries=entries):
            return _map_of([(code_of(key), code_of(value)) for key, value in entries], node.offset)
        case Call(function=name, arguments=arguments):
            return _call(name, [code_of(each) for each in arguments], node.offset)
        case Macro():
            return _macro(node)
        case _:
            raise AssertionError(node)


def passes_data(node: Node) -> bool:
    """Whether the value is part of the scope as it is, so that nothing new is made."""
    match node:
        case Name() | Literal():
            return True
        case Select(base=base) | Index(base=base):
            return passes_data(base)
        case Conditional(yes=yes, no=no):
            return passes_data(yes) and passes_data(no)
        case Coalesce(values=values):
            return all(map(passes_data, values))
        case _:
            return False


# --- Names, fields and indexes ---------------------------------------------------------------------------


def _name(name: str, offset: int) -> Code:
    def run(frame: Frame) -> Any:
        try:
            return frame.scope[name]
        except KeyError:
            raise MissingError(f"there is no {name!r} here", offset) from None

    return run


def _path(node: Select | Index) -> Code:
    """A whole path as one closure: the fields and indexes of `a.b[0].c` from left to right."""
    steps: list[tuple[str | int | None, Code | None, bool, int]] = []
    base: Node = node
    while isinstance(base, Select | Index):
        if isinstance(base, Select):
            steps.append((base.field, None, base.optional, base.offset))
        elif isinstance(base.index, Literal) and type(base.index.value) in (str, int):
            steps.append((base.index.value, None, base.optional, base.offset))
        else:
            steps.append((None, code_of(base.index), base.optional, base.offset))
        base = base.base
    steps.reverse()
    start = code_of(base)
    fields = [key for key, _, optional, _ in steps if type(key) is str and not optional]
    general = _general_path(start, steps)
    if len(fields) < len(steps):
        return general

    def run(frame: Frame) -> Any:
        value = start(frame)
        for field in fields:
            if type(value) is dict and field in value:
                value = value[field]
            else:
                # The slow way finds the place and the words.
                return general(frame)
        return value

    return run


def _general_path(start: Code, steps: list[tuple[str | int | None, Code | None, bool, int]]) -> Code:
    def run(frame: Frame) -> Any:
        value = start(frame)
        absent = False
        for key, code, optional, offset in steps:
            if absent:
                return None
            at = key if code is None else code(frame)
            try:
                value = element(value, at)
            except MissingError as error:
                if not optional:
                    raise error.at(offset) from None
                absent = True
                value = None
            except ExpressionError as error:
                raise error.at(offset) from None
            if optional and value is None:
                absent = True
        return value

    return run


def element(value: Any, at: Any) -> Any:
    """The field of a map or the element of a list."""
    kind = type(value)
    if kind is dict:
        if type(at) is not str:
            raise ExpressionError(f"the keys of a map are texts, and this is {shown(at)}")
        if at in value:
            return value[at]
        raise MissingError(f"there is no field {at[:100]!r} among {_listed(value)}")
    if kind is list:
        if type(at) is str:
            raise ExpressionError(
                f"a list has no field {at[:100]!r}", suggestion=f"write x[0].{at[:40]}, or x.map(each, each.{at[:40]})"
            )
        if type(at) is float and isfinite(at) and at == int(at):
            at = int(at)
        if type(at) is not int:
            raise ExpressionError(f"the index of a list is a whole number, and this is {shown(at)}")
        if 0 <= at < len(value):
            return value[at]
        raise MissingError(f"there is no element {at} in a list of {len(value)}")
    if value is None:
        raise MissingError(f"null has no field {at[:100]!r}" if type(at) is str else "null has no elements")
    raise ExpressionError(f"{shown(value)} has no field or element {at[:100] if type(at) is str else at!r}")


def _listed(value: dict[str, Any]) -> str:
    names = [repr(name) for name in list(value)[:8] if type(name) is str and len(name) <= 40]
    return f"{', '.join(names)}{', ...' if len(value) > len(names) else ''}" if names else "no fields at all"


def _has(select: Select) -> Code:
    base, field = code_of(select.base), select.field

    def run(frame: Frame) -> bool:
        try:
            value = base(frame)
        except MissingError:
            return False
        if value is None:
            return False
        if type(value) is not dict:
            raise ExpressionError(f"has() looks into a map, and this is {shown(value)}", select.offset)
        return field in value

    return run


def _coalesce(codes: list[Code]) -> Code:
    def run(frame: Frame) -> Any:
        for code in codes:
            try:
                value = code(frame)
            except MissingError:
                continue
            if value is not None:
                return value
        return None

    return run


# --- Operators -------------------------------------------------------------------------------------------


def _unary(operation: Callable[[Any], Any], operand: Code, offset: int) -> Code:
    def run(frame: Frame) -> Any:
        try:
            return operation(operand(frame))
        except ExpressionError as error:
            raise error.at(offset) from None

    return run


def _binary(operation: Operation, left: Code, right: Code, offset: int) -> Code:
    def run(frame: Frame) -> Any:
        try:
            return operation(frame, left(frame), right(frame))
        except ExpressionError as error:
            raise error.at(offset) from None

    return run


def _chain(first: Code, rest: list[tuple[Operation, Code]], offset: int) -> Code:
    if len(rest) == 1:
        return _binary(rest[0][0], first, rest[0][1], offset)

    def run(frame: Frame) -> Any:
        try:
            value = first(frame)
            for operation, operand in rest:
                value = operation(frame, value, operand(frame))
            return value
        except ExpressionError as error:
            raise error.at(offset) from None

    return run


def _conditional(condition: Code, yes: Code, no: Code, offset: int) -> Code:
    def run(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return yes(frame)
        if value is False:
            return no(frame)
        raise ExpressionError(f"a condition is true or false, and this is {shown(value)}", offset)

    return run


def _logic(codes: list[Code], offset: int, *, decided_by: bool, sign: str) -> Code:
    """CEL's `&&` and `||`: one operand that decides is enough, also beside one that fails."""

    def run(frame: Frame) -> bool:
        failure: ExpressionError | None = None
        for code in codes:
            try:
                value: object = code(frame)
            except ExpressionLimitError:
                raise
            except ExpressionError as error:
                failure = failure or error
                continue
            if value is decided_by:
                return decided_by
            if type(value) is not bool:
                failure = failure or ExpressionError(
                    f"`{sign}` takes true or false, and this is {shown(value)}", offset
                )
        if failure:
            raise failure
        return not decided_by

    return run


def _not(value: Any) -> bool:
    if type(value) is not bool:
        raise ExpressionError(f"`!` takes true or false, and this is {shown(value)}")
    return not value


def _minus(value: Any) -> Any:
    if type(value) is float:
        return -value
    if type(value) is int:
        return in_range(-value)
    raise ExpressionError(f"`-` takes a number, and this is {shown(value)}")


def finite(value: float) -> float:
    """A double that JSON can hold."""
    if isfinite(value):
        return value
    raise ExpressionError("the result is not a finite number")


def _mismatch(sign: str, left: Any, right: Any) -> ExpressionError:
    advice = ""
    if sign == "+" and str in (type(left), type(right)):
        advice = "write string(x)"
    elif left is None or right is None:
        advice = "write coalesce(x, 0)"
    return ExpressionError(f"`{sign}` cannot take {shown(left)} and {shown(right)}", suggestion=advice)


def _add(frame: Frame, left: Any, right: Any) -> Any:
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return in_range(left + right)
        if kind is str:
            refuse_length(len(left) + len(right))
            return frame.made(left + right)
        if kind is list:
            frame.items(len(left) + len(right))
            return left + right
    return _plus(frame, left, right)


def _numbers(sign: str, whole: Callable[[int, int], int], broken: Callable[[float, float], float]) -> Operation:
    def run(frame: Frame, left: Any, right: Any) -> Any:
        if type(left) is int and type(right) is int:
            return in_range(whole(left, right))
        if is_number(left) and is_number(right):
            try:
                return finite(broken(left, right))
            except (OverflowError, ValueError):
                raise ExpressionError("the result is not a finite number") from None
        raise _mismatch(sign, left, right)

    return run


_plus = _numbers("+", lambda a, b: a + b, lambda a, b: a + b)


def _divided(left: int, right: int) -> int:
    """Towards zero, as in CEL: -7 / 2 is -3."""
    if right == 0:
        raise ExpressionError("a division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    """With the sign of the first number, as in CEL: -7 % 2 is -1."""
    if right == 0:
        raise ExpressionError("a division by zero")
    return left - _divided(left, right) * right


def _quotient(left: float, right: float) -> float:
    if right == 0:
        raise ExpressionError("a division by zero")
    return left / right


def _broken_remainder(left: float, right: float) -> float:
    if right == 0:
        raise ExpressionError("a division by zero")
    return fmod(left, right)


def _in(frame: Frame, left: Any, right: Any) -> bool:
    if type(right) is dict:
        return type(left) is str and left in right
    if type(right) is list:
        frame.items(len(right))
        return any(equal(frame, left, each) for each in right)
    advice = "write text.contains(part)" if type(right) is str else ""
    raise ExpressionError(f"`in` looks into a list or a map, and this is {shown(right)}", suggestion=advice)


ARITHMETIC: dict[str, Operation] = {
    "+": _add,
    "-": _numbers("-", lambda a, b: a - b, lambda a, b: a - b),
    "*": _numbers("*", lambda a, b: a * b, lambda a, b: a * b),
    "/": _numbers("/", _divided, _quotient),
    "%": _numbers("%", _remainder, _broken_remainder),
}
COMPARISONS: dict[str, Operation] = {
    "==": equal,
    "!=": lambda frame, left, right: not equal(frame, left, right),
    "<": less,
    ">": lambda frame, left, right: less(frame, right, left),
    "<=": lambda frame, left, right: less(frame, left, right) or equal(frame, left, right),
    ">=": lambda frame, left, right: less(frame, right, left) or equal(frame, left, right),
    "in": _in,
}


# --- Maps, functions and macros --------------------------------------------------------------------------


def _map_of(entries: list[tuple[Code, Code]], offset: int) -> Code:
    def run(frame: Frame) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key_code, value_code in entries:
            key = key_code(frame)
            if type(key) is not str:
                raise ExpressionError(f"the keys of a map are texts, and this is {shown(key)}", offset)
            if key in made:
                raise ExpressionError(f"a map has the key {key[:100]!r} twice", offset)
            made[key] = value_code(frame)
        return made

    return run


def _call(name: str, codes: list[Code], offset: int) -> Code:
    function = FUNCTIONS[name].run

    def run(frame: Frame) -> Any:
        try:
            return function(frame, *[code(frame) for code in codes])
        except ExpressionError as error:
            raise error.at(offset) from None

    return run


def _macro(node: Macro) -> Code:
    target, slot, kind, offset = code_of(node.target), node.variable.slot, node.kind, node.offset
    *filters, body = (code_of(each) for each in node.bodies)
    # One step is an element with up to eight operations on it.
    cost = 1 + sum(map(size, node.bodies)) // ITEMS_PER_FUEL
    finish = _MACROS[kind]

    def run(frame: Frame) -> Any:
        items = target(frame)
        if type(items) is not list:
            if type(items) is not dict:
                raise ExpressionError(f"{kind}() needs a list or a map, and this is {type_name(items)}", offset)
            items = list(items)
        variables = frame.variables

        def apply(code: Code, item: Any) -> Any:
            frame.spend(cost)
            variables[slot] = item
            return code(frame)

        try:
            if filters:
                items = [item for item in items if _truth(apply(filters[0], item), kind)]
            return finish(frame, items, lambda item: apply(body, item))
        except ExpressionError as error:
            raise error.at(offset) from None

    return run


def _truth(value: Any, kind: str) -> bool:
    if type(value) is not bool:
        raise ExpressionError(f"the body of {kind}() is true or false, and this is {shown(value)}")
    return bool(value)


Body = Callable[[Any], Any]


def _any(frame: Frame, items: list[Any], body: Body, *, decided_by: bool, kind: str) -> bool:
    """Like `||` and `&&` over all elements: one that decides is enough, also beside one that fails."""
    failure: ExpressionError | None = None
    for item in items:
        try:
            if _truth(body(item), kind) is decided_by:
                return decided_by
        except ExpressionLimitError:
            raise
        except ExpressionError as error:
            failure = failure or error
    if failure:
        raise failure
    return not decided_by


def _exists_one(frame: Frame, items: list[Any], body: Body) -> bool:
    return sum(_truth(body(item), "exists_one") for item in items) == 1


_MACROS: dict[str, Callable[[Frame, list[Any], Body], Any]] = {
    "all": lambda frame, items, body: _any(frame, items, body, decided_by=False, kind="all"),
    "exists": lambda frame, items, body: _any(frame, items, body, decided_by=True, kind="exists"),
    "exists_one": _exists_one,
    "filter": lambda frame, items, body: [item for item in items if _truth(body(item), "filter")],
    "map": lambda frame, items, body: [body(item) for item in items],
    "sortBy": lambda frame, items, body: sorted_by(frame, items, [body(item) for item in items]),
}
