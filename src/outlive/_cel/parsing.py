"""From words to a tree.

The grammar is CEL's, without messages, bytes, unsigned numbers and names that begin with a dot. Operators are ordered
with a stack and not by recursion, so brackets alone decide how deep Python's stack goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from outlive._cel.errors import ExpressionError
from outlive._cel.functions import FUNCTIONS
from outlive._cel.spelling import nearest, suggests
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
    children,
)
from outlive._cel.tokens import INT_MAX, INT_MIN, Token

T = TypeVar("T")

NESTING_MAX = 100
"""How many brackets, calls and conditionals may be open at once."""
HEIGHT_MAX = 200
"""How many operations may stand inside one another, brackets or not."""

MACROS = {"all": 1, "exists": 1, "exists_one": 1, "filter": 1, "map": 1, "sortBy": 1}
"""The macros, which look at one element after the other, and how many bodies each has; `map` may have a filter before
its body."""
SPECIAL = {"has", "coalesce", "orValue"}
_CONSTANTS = {"true": True, "false": False, "null": None}
_RESERVED = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import"}
    | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}
)
_RANKS = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 3),
    **dict.fromkeys("+-", 4),
    **dict.fromkeys("*/%", 5),
}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}(?:\.[A-Za-z_][A-Za-z0-9_]{0,99}){0,20}")
_ADVICE = {
    "and": "write `&&`",
    "or": "write `||`",
    "not": "write `!`",
    "is": "write `==`",
    "if": "write `condition ? yes : no`",
    "for": "write list.map(x, ...)",
    "None": "write `null`",
    "True": "write `true`",
    "False": "write `false`",
    "lambda": "write list.map(x, ...)",
}


def parse_tokens(tokens: list[Token]) -> Node:
    """The tree of an expression.

    Raises:
        ExpressionError: it does not follow the grammar, names a function that is not there, or is too deep.
    """
    parser = _Parser(tokens)
    node = parser.expression()
    parser.expect_end()
    if len(tokens) > HEIGHT_MAX:  # Each operation has a word of its own.
        _refuse_height(node)
    return node


def plain_path(text: str) -> Node | None:
    """The tree of `a.b.c`, which most expressions are, without the way over words; None if it is anything else."""
    first, *fields = text.split(".")
    if len(fields) > 20 or not _PLAIN.fullmatch(text) or first in _CONSTANTS or first in _RESERVED or first == "in":
        return None
    node: Node = Name(0, first)
    at = len(first) + 1
    for field in fields:
        node = Select(at, node, field, False)
        at += len(field) + 1
    return node


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean 'amount'?`, or nothing."""
    close = nearest(word, known) if suggests() else None
    return f"did you mean {close!r}?" if close else ""


def _refuse_height(node: Node) -> None:
    left = [(node, 1)]
    while left:
        node, height = left.pop()
        if height > HEIGHT_MAX:
            raise ExpressionError(f"more than {HEIGHT_MAX} operations stand inside one another", node.offset)
        left += [(child, height + 1) for child in children(node)]


class _Parser:
    """Reads the words of one expression from left to right."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._variables: dict[str, Local] = {}

    def expression(self) -> Node:
        """Operands with the operators between them, by rank; behind them perhaps `? expression : expression`."""
        token = self._tokens[self._at]
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise ExpressionError(f"more than {NESTING_MAX} brackets are open at once", token.offset)
        operands = [self._operand()]
        signs: list[Token] = []
        while (rank := _RANKS.get(self._sign() or "", 0)) > 0:
            while signs and _RANKS[signs[-1].value] >= rank:
                _reduce(operands, signs)
            signs.append(self._next())
            operands.append(self._operand())
        while signs:
            _reduce(operands, signs)
        node = operands[0]
        if self._accept("?"):
            yes = self.expression()
            self._expect(":", "of `condition ? yes : no`")
            node = Conditional(token.offset, node, yes, self.expression())
        self._depth -= 1
        return node

    def expect_end(self) -> None:
        """Refuse what comes behind a whole expression."""
        token = self._tokens[self._at]
        if token.kind != "end":
            self._refuse(token, "the expression is complete before")

    def _operand(self) -> Node:
        """Signs before a value, the value, and the fields, indexes and calls behind it."""
        prefixes = []
        while self._sign() in ("!", "-"):
            prefixes.append(self._next())
        # -9223372036854775808 is one number: without its sign it would be too large.
        negative = bool(prefixes) and prefixes[-1].value == "-" and self._tokens[self._at].kind in ("int", "double")
        if negative:
            prefixes.pop()
        node = self._primary(negative=negative)
        while (token := self._tokens[self._at]).kind == "sign":
            sign = token.value
            if sign == ".":
                self._at += 1
                node = self._member(node, token.offset)
            elif sign == "[":
                self._at += 1
                optional = self._accept("?")
                node = Index(token.offset, node, self.expression(), optional)
                self._expect("]", "of an index")
            elif sign == "?" and self._is_sign(self._at + 1, "."):
                raise ExpressionError("`?.` is written the other way round", token.offset, "write `.?`")
            elif sign == "(":
                raise ExpressionError("only functions of the fixed list can be called", token.offset)
            else:
                break
        return _prefixed(prefixes, node) if prefixes else node

    def _primary(self, *, negative: bool) -> Node:
        token = self._next()
        kind, value = token.kind, token.value
        if kind == "name":
            return self._name(token, value)
        if kind == "text":
            return Literal(token.offset, value)
        if kind in ("int", "double"):
            value = -value if negative else value
            if kind == "int" and not INT_MIN <= value <= INT_MAX:
                raise ExpressionError("an integer literal has at most 64 bits", token.offset)
            return Literal(token.offset, value)
        if kind == "sign" and value == "(":
            node = self.expression()
            self._expect(")", "of a bracket")
            return node
        if kind == "sign" and value == "[":
            return ListOf(token.offset, self._until("]", self.expression))
        if kind == "sign" and value == "{":
            return MapOf(token.offset, self._until("}", self._entry))
        raise self._refusal(token, "a value was expected before")

    def _name(self, token: Token, name: str) -> Node:
        if name in _CONSTANTS:
            return Literal(token.offset, _CONSTANTS[name])
        if self._accept("("):
            if name == "has":
                return self._has(token.offset)
            if name in MACROS:
                raise ExpressionError(f"{name}() needs a list before it", token.offset, f"write list.{name}(x, ...)")
            return self._call(name, (), token.offset)
        if name in _RESERVED or name == "in":
            raise ExpressionError(f"{name!r} is a reserved word", token.offset, _ADVICE.get(name, ""))
        local = self._variables.get(name)
        return Local(token.offset, name, local.slot) if local else Name(token.offset, name)

    def _entry(self) -> tuple[Node, Node]:
        key = self.expression()
        if isinstance(key, Literal) and type(key.value) is not str:
            raise ExpressionError("the keys of a map are texts", key.offset, 'write {"key": value}')
        self._expect(":", 'of a map: {"key": value}')
        return key, self.expression()

    def _member(self, base: Node, offset: int) -> Node:
        """Parse the part behind a dot: a field, a function or a macro."""
        optional = self._accept("?")
        token = self._next()
        if token.kind != "name":
            raise self._refusal(token, "the name of a field was expected before")
        name = str(token.value)
        if optional or not self._accept("("):
            return Select(token.offset, base, name, optional)
        if isinstance(base, Name) and f"{base.name}.{name}" in FUNCTIONS:
            return self._call(f"{base.name}.{name}", (), base.offset)
        if name in MACROS:
            return self._macro(name, base, token.offset)
        return self._call(name, (base,), token.offset)

    def _has(self, offset: int) -> Node:
        selected = self.expression()
        self._expect(")", "of has(...)")
        if not isinstance(selected, Select):
            raise ExpressionError("has() takes a field", offset, 'write has(x.field), or "field" in x')
        return Has(offset, selected)

    def _call(self, name: str, before: tuple[Node, ...], offset: int) -> Node:
        arguments = (*before, *self._until(")", self.expression))
        if name == "coalesce" or (name == "orValue" and before):
            if not arguments or (name == "orValue" and len(arguments) != 2):
                raise ExpressionError(f"{name}() takes {'a value' if before else 'at least one value'}", offset)
            return Coalesce(offset, arguments)
        function = FUNCTIONS.get(name)
        if function is None:
            known = [*FUNCTIONS, *MACROS, *SPECIAL]
            raise ExpressionError(f"there is no function {name[:100]!r}", offset, suggestion(name, known))
        if not function.least <= len(arguments) <= function.most:
            raise ExpressionError(
                f"{name}() takes {function.counts()} and was given {len(arguments)}", offset, f"write {function.form}"
            )
        return Call(offset, name, arguments)

    def _macro(self, kind: str, target: Node, offset: int) -> Node:
        token = self._next()
        if token.kind != "name" or token.value in _CONSTANTS or token.value in _RESERVED or token.value == "in":
            raise ExpressionError(
                f"{kind}() begins with the name of its variable", token.offset, f"list.{kind}(x, ...)"
            )
        self._expect(",", f"of {kind}(x, ...)")
        name = str(token.value)
        outer = self._variables
        # A variable that hides an outer one of the same name has a place of its own.
        variable = Local(token.offset, name, 1 + max((local.slot for local in outer.values()), default=-1))
        self._variables = {**outer, name: variable}
        bodies = self._until(")", self.expression)
        self._variables = outer
        most = 2 if kind == "map" else 1
        if not 1 <= len(bodies) <= most:
            raise ExpressionError(
                f"{kind}() takes a variable and {'one' if most == 1 else 'one or two'} values", offset
            )
        return Macro(offset, kind, target, variable, bodies)

    def _until(self, closing: str, read: Callable[[], T]) -> tuple[T, ...]:
        """Values between commas, up to a bracket that closes; a comma before it is allowed."""
        found: list[T] = []
        while not self._accept(closing):
            found.append(read())
            if not self._accept(","):
                self._expect(closing, "or a comma")
                break
        return tuple(found)

    def _next(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def _sign(self) -> str | None:
        token = self._tokens[self._at]
        if token.kind == "sign" or (token.kind == "name" and token.value == "in"):
            return str(token.value)
        return None

    def _is_sign(self, at: int, sign: str) -> bool:
        return at < len(self._tokens) and self._tokens[at][:2] == ("sign", sign)

    def _accept(self, sign: str) -> bool:
        token = self._tokens[self._at]  # The last one is `end`, and is never passed.
        if token.value == sign and token.kind == "sign":
            self._at += 1
            return True
        return False

    def _expect(self, sign: str, where: str) -> None:
        token = self._tokens[self._at]
        if not self._accept(sign):
            raise self._refusal(token, f"`{sign}` {where} was expected before")

    def _refuse(self, token: Token, what: str) -> None:
        raise self._refusal(token, what)

    def _refusal(self, token: Token, what: str) -> ExpressionError:
        advice = _ADVICE.get(str(token.value), "") if token.kind == "name" else ""
        shown = "its end" if token.kind == "end" else f"`{str(token.value)[:40]}`"
        return ExpressionError(f"{what} {shown}", token.offset, advice)


def _prefixed(prefixes: list[Token], node: Node) -> Node:
    """Signs before a value; two of one kind do nothing but look at the type, so more than two are not kept."""
    while prefixes:
        token = prefixes.pop()
        kind = Not if token.value == "!" else Minus
        if isinstance(node, kind) and isinstance(node.operand, kind):
            node = node.operand
        else:
            node = kind(token.offset, node)
    return node


def _reduce(operands: list[Node], signs: list[Token]) -> None:
    """Put the last operator and its two operands together."""
    right, left, token = operands.pop(), operands.pop(), signs.pop()
    sign, rank = token.value, _RANKS[token.value]
    node: Node
    if rank <= 2:
        if isinstance(left, Logic) and left.sign == sign:
            left.operands.append(right)
            node = left
        else:
            node = Logic(token.offset, sign, [left, right])
    elif rank == 3:
        node = Compare(token.offset, sign, left, right)
    elif isinstance(left, Chain) and _RANKS[left.rest[0][0]] == rank:
        # (a - b) + c is a - b + c.
        left.rest.append((sign, right))
        node = left
    else:
        node = Chain(token.offset, left, [(sign, right)])
    operands.append(node)
