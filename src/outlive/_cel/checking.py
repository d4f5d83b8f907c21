"""The types of an expression, before anything runs.

Only what certainly fails is a mistake: where nothing is known of a value, nothing is said about it.
"""

from __future__ import annotations

from collections.abc import Mapping

from outlive._cel.errors import ExpressionError
from outlive._cel.functions import FUNCTIONS
from outlive._cel.parsing import suggestion
from outlive._cel.spelling import beginning_with
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
    path_of,
)
from outlive._cel.types import (
    ANY,
    BOOL,
    LIST,
    MAP,
    NULL,
    NUMBER,
    STRING,
    Type,
    field_of,
    join,
    type_of_value,
)

_GROUPS = {"collection": {"string", "list", "map"}, "text or list": {"string", "list"}}
_GROUP_NAMES = {"collection": "a string, a list or a map", "text or list": "a string or a list"}


def type_of_node(node: Node, types: Mapping[str, Type]) -> Type:
    """The type of a tree.

    Raises:
        ExpressionError: the first mistake, with its place.
    """
    return _Check(types).type_of(node)


class _Check:
    """One look at one expression."""

    def __init__(self, types: Mapping[str, Type]) -> None:
        self._types = types
        self._variables: dict[int, Type] = {}

    def type_of(self, node: Node) -> Type:
        """The type of a node and of everything in it."""
        match node:
            case Literal(value=value):
                return type_of_value(value)
            case Name(name=name):
                return self._name(name, node.offset)
            case Local(slot=slot):
                return self._variables[slot]
            case Select(base=base, field=field):
                return self._field(self.type_of(base), field, base, node.offset)
            case Index():
                return self._index(node)
            case Has(select=select):
                self.type_of(select)
                return BOOL
            case Coalesce(values=values):
                return self._joined(values)
            case Not(operand=operand):
                return self._expect(operand, BOOL, "`!`")
            case Minus(operand=operand):
                return self._expect(operand, NUMBER, "`-`")
            case Chain(first=first, rest=rest):
                type_ = self.type_of(first)
                for sign, operand in rest:
                    type_ = _arithmetic(sign, type_, self.type_of(operand), node.offset)
                return type_
            case Compare(sign=sign, left=left, right=right):
                _refuse_comparison(sign, self.type_of(left), self.type_of(right), node.offset)
                return BOOL
            case Logic(sign=sign, operands=operands):
                for operand in operands:
                    self._expect(operand, BOOL, f"`{sign}`")
                return BOOL
            case Conditional(condition=condition, yes=yes, no=no):
                self._expect(condition, BOOL, "the condition of `? :`")
                return join(self.type_of(yes), self.type_of(no))
            case ListOf(items=items):
                joined = self._joined(items)
                return LIST(ANY if joined == NULL else joined)
            case MapOf(entries=entries):
                return self._map(entries)
            case Call(function=name, arguments=arguments):
                return self._call(name, arguments)
            case Macro():
                return self._macro(node)
            case _:
                raise AssertionError(node)

    def _name(self, name: str, offset: int) -> Type:
        if name in self._types:
            return self._types[name]
        advice = suggestion(name, self._types) or f"there are {', '.join(sorted(self._types))}"
        raise ExpressionError(f"unknown name {name[:100]!r}", offset, advice)

    def _field(self, base: Type, field: str, of: Node, offset: int) -> Type:
        if base.kind == "any":
            return ANY
        if base.kind != "map":
            advice = f"write x[0].{field[:40]}, or x.map(each, each.{field[:40]})" if base.kind == "list" else ""
            raise ExpressionError(f"{_named(of)} is a {base} and has no field {field[:100]!r}", offset, advice)
        found = field_of(base, field)
        if found is None:
            raise ExpressionError(
                f"unknown field {field[:100]!r} of {_named(of)}", offset, _field_advice(base, field, of)
            )
        return found

    def _index(self, node: Index) -> Type:
        base = self.type_of(node.base)
        if isinstance(node.index, Literal) and type(node.index.value) is str:
            return self._field(base, node.index.value, node.base, node.offset)
        index = self.type_of(node.index)
        if base.kind == "list":
            self._expect(node.index, NUMBER, "the index of a list")
            return base.of or ANY
        if base.kind == "map":
            self._expect(node.index, STRING, "the key of a map")
            return base.of or ANY if base.fields is None else ANY
        if base.kind != "any":
            raise ExpressionError(f"{_named(node.base)} is a {base} and has no elements", node.offset)
        if index.kind in ("bool", "list", "map"):
            raise ExpressionError(f"an index is a number or a string, and this is a {index}", node.offset)
        return ANY

    def _joined(self, nodes: tuple[Node, ...]) -> Type:
        joined = NULL
        for node in nodes:
            joined = join(joined, self.type_of(node))
        return joined

    def _map(self, entries: tuple[tuple[Node, Node], ...]) -> Type:
        fields: dict[str, Type] = {}
        is_known = True
        for key, value in entries:
            if isinstance(key, Name) and key.name not in self._types:
                raise ExpressionError(f"unknown name {key.name!r}", key.offset, f'write {{"{key.name}": ...}}')
            self._expect(key, STRING, "the key of a map")
            type_ = self.type_of(value)
            if isinstance(key, Literal):
                fields[key.value] = type_
            else:
                is_known = False
        return MAP(fields) if is_known else MAP(fields, of=ANY)

    def _expect(self, node: Node, wanted: Type, what: str) -> Type:
        found = self.type_of(node)
        if found.kind not in ("any", wanted.kind):
            raise ExpressionError(f"{what} takes a {wanted}, and {_named(node)} is {_a(found)}", node.offset)
        return wanted

    def _call(self, name: str, arguments: tuple[Node, ...]) -> Type:
        function = FUNCTIONS[name]
        found = [self.type_of(each) for each in arguments]
        takes = [*function.takes, *[function.takes[-1]] * (len(found) - len(function.takes))]
        for wanted, type_, node in zip(takes, found, arguments, strict=False):
            if not _accepts(wanted, type_):
                advice = "write string(x)" if wanted == STRING and type_ == NUMBER else ""
                wants = _GROUP_NAMES.get(wanted.kind, _a(wanted))
                raise ExpressionError(f"{name}() takes {wants}, and {_named(node)} is {_a(type_)}", node.offset, advice)
        return function.gives if isinstance(function.gives, Type) else function.gives(found)

    def _macro(self, node: Macro) -> Type:
        target = self.type_of(node.target)
        if target.kind not in ("any", "list", "map"):
            raise ExpressionError(
                f"{node.kind}() needs a list or a map, and {_named(node.target)} is {_a(target)}", node.offset
            )
        element = {"list": target.of or ANY, "map": STRING}.get(target.kind, ANY)
        self._variables[node.variable.slot] = element
        *filters, body = node.bodies
        for each in filters:
            self._expect(each, BOOL, "the filter of map()")
        if node.kind == "map":
            return LIST(self.type_of(body))
        if node.kind == "sortBy":
            self.type_of(body)
            return LIST(element)
        self._expect(body, BOOL, f"the body of {node.kind}()")
        return LIST(element) if node.kind == "filter" else BOOL


def _a(type_: Type) -> str:
    return "null" if type_.kind == "null" else f"a {type_}"


def _named(node: Node) -> str:
    """The name of a node in a message: its path, or `this`."""
    path = path_of(node)
    if path is not None and path[1]:
        return path[0][0] + "".join(f".{name}" if name.isidentifier() else f'["{name}"]' for name in path[0][1:])
    return node.name if isinstance(node, Local) else "this"


def _field_advice(base: Type, field: str, of: Node) -> str:
    known = list(base.fields or ())
    # steps.send-mail.id is a subtraction: the field is `send`.
    if dashed := beginning_with(f"{field}-", known):
        return f'write {_named(of)}["{dashed}"]'
    if advice := suggestion(field, known):
        return advice
    listed = ", ".join(name[:40] for name in known[:8])
    return f"there are {listed}{', ...' if len(known) > 8 else ''}" if known else ""


def _accepts(wanted: Type, found: Type) -> bool:
    if "any" in (wanted.kind, found.kind):
        return True
    if wanted.kind in _GROUPS:
        return found.kind in _GROUPS[wanted.kind]
    if wanted.kind == found.kind == "list":
        return _accepts(wanted.of or ANY, found.of or ANY)
    return wanted.kind == found.kind


def _arithmetic(sign: str, left: Type, right: Type, offset: int) -> Type:
    kinds = {left.kind, right.kind} - {"any"}
    allowed = {"number", "string", "list"} if sign == "+" else {"number"}
    if not kinds <= allowed or len(kinds) > 1:
        advice = "write string(x)" if sign == "+" and kinds == {"string", "number"} else ""
        raise ExpressionError(f"`{sign}` cannot take {_a(left)} and {_a(right)}", offset, advice)
    if kinds == {"list"}:
        return LIST(join(left.of or ANY, right.of or ANY)) if left.kind == right.kind else LIST()
    return {"number": NUMBER, "string": STRING}[kinds.pop()] if kinds else (ANY if sign == "+" else NUMBER)


def _refuse_comparison(sign: str, left: Type, right: Type, offset: int) -> None:
    kinds = {left.kind, right.kind} - {"any"}
    if sign == "in":
        if right.kind not in ("any", "list", "map"):
            advice = "write text.contains(part)" if right.kind == "string" else ""
            raise ExpressionError(f"`in` looks into a list or a map, and this is {_a(right)}", offset, advice)
        element = {"list": right.of or ANY, "map": STRING}.get(right.kind, ANY)
        kinds = {left.kind, element.kind} - {"any", "null"}
        if len(kinds) > 1:
            raise ExpressionError(f"{_a(left)} is never in {_a(right)}", offset)
    elif sign in ("==", "!="):
        if len(kinds - {"null"}) > 1:
            raise ExpressionError(f"{_a(left)} is never equal to {_a(right)}", offset)
    elif not kinds <= {"number", "string", "bool"} or len(kinds) > 1:
        raise ExpressionError(f"{_a(left)} and {_a(right)} have no order", offset)
