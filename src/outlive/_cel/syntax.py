"""The nodes of a parsed expression.

A tree that is never changed once it is parsed. Chains of equal rank (`a + b - c`, `a && b && c`) are one node, so that
the height of the tree is that of the brackets and not of the length. Each node has the character at which it stands,
for messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Node:
    """A part of an expression."""

    offset: int


@dataclass(slots=True, eq=False)
class Literal(Node):
    """A value that is written out."""

    value: Any


@dataclass(slots=True, eq=False)
class Name(Node):
    """A value that the scope has, such as `input`."""

    name: str


@dataclass(slots=True, eq=False)
class Local(Node):
    """The variable of a macro, such as `x` in `items.map(x, x.id)`."""

    name: str
    slot: int


@dataclass(slots=True, eq=False)
class Select(Node):
    """`base.field`, or `base.?field`, which is null where it is missing."""

    base: Node
    field: str
    optional: bool


@dataclass(slots=True, eq=False)
class Index(Node):
    """`base[index]`, or `base[?index]`, which is null where it is missing."""

    base: Node
    index: Node
    optional: bool


@dataclass(slots=True, eq=False)
class Has(Node):
    """`has(base.field)`."""

    select: Select


@dataclass(slots=True, eq=False)
class Coalesce(Node):
    """`coalesce(a, b)`: the first that is neither null nor missing."""

    values: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class Not(Node):
    """`!x`."""

    operand: Node


@dataclass(slots=True, eq=False)
class Minus(Node):
    """`-x`."""

    operand: Node


@dataclass(slots=True, eq=False)
class Chain(Node):
    """`first + second - third`: arithmetic of one rank, from left to right."""

    first: Node
    rest: list[tuple[str, Node]]


@dataclass(slots=True, eq=False)
class Compare(Node):
    """`==`, `!=`, `<`, `<=`, `>`, `>=` or `in`."""

    sign: str
    left: Node
    right: Node


@dataclass(slots=True, eq=False)
class Logic(Node):
    """`a && b && c`, or the same with `||`."""

    sign: str
    operands: list[Node]


@dataclass(slots=True, eq=False)
class Conditional(Node):
    """`condition ? yes : no`."""

    condition: Node
    yes: Node
    no: Node


@dataclass(slots=True, eq=False)
class ListOf(Node):
    """`[a, b]`."""

    items: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class MapOf(Node):
    """`{"a": 1}`."""

    entries: tuple[tuple[Node, Node], ...]


@dataclass(slots=True, eq=False)
class Call(Node):
    """A function of the fixed list; `x.f(y)` is `f(x, y)`."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class Macro(Node):
    """`target.map(x, body)`, and the others that look at one element after the other."""

    kind: str
    target: Node
    variable: Local
    bodies: tuple[Node, ...]


def children(node: Node) -> Iterator[Node]:
    """The parts of a node."""
    match node:
        case Select(base=base):
            yield base
        case Index(base=base, index=index):
            yield from (base, index)
        case Has(select=select):
            yield select
        case Coalesce(values=nodes) | Logic(operands=nodes) | ListOf(items=nodes) | Call(arguments=nodes):
            yield from nodes
        case Not(operand=operand) | Minus(operand=operand):
            yield operand
        case Chain(first=first, rest=rest):
            yield first
            yield from (operand for _, operand in rest)
        case Compare(left=left, right=right):
            yield from (left, right)
        case Conditional(condition=condition, yes=yes, no=no):
            yield from (condition, yes, no)
        case MapOf(entries=entries):
            for entry in entries:
                yield from entry
        case Macro(target=target, bodies=bodies):
            yield from (target, node.variable, *bodies)
        case _:
            return


def size(node: Node) -> int:
    """How many nodes there are in a tree."""
    count, left = 0, [node]
    while left:
        count += 1
        left += children(left.pop())
    return count


def path_of(node: Node) -> tuple[tuple[str, ...], bool] | None:
    """The names along `a.b["c"]` as far as they are written out, and whether that is all; None if it is not a path."""
    parts: list[str | None] = []
    # Without patterns and recursion: every expression of every document comes by here.
    while isinstance(node, Select | Index):
        if isinstance(node, Select):
            parts.append(node.field)
        else:
            index = node.index
            parts.append(index.value if isinstance(index, Literal) and type(index.value) is str else None)
        node = node.base
    if not isinstance(node, Name):
        return None
    names = [node.name]
    for part in reversed(parts):
        if part is None:
            return tuple(names), False
        names.append(part)
    return tuple(names), True


def references_of(node: Node) -> frozenset[tuple[str, ...]]:
    """Everything that an expression asks of its scope, each as the names along its path."""
    found: set[tuple[str, ...]] = set()
    left = [node]
    while left:
        node = left.pop()
        if isinstance(node, Literal | Local):
            continue
        path = path_of(node) if isinstance(node, Select | Index | Name) else None
        if path is None:
            left += children(node)
            continue
        found.add(path[0])
        # The indexes inside a path have references of their own: steps.a[input.number].
        while isinstance(node, Select | Index):
            if isinstance(node, Index):
                left.append(node.index)
            node = node.base
    return frozenset(found)
