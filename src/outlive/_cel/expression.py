"""One expression: parsed once, checked before anything runs, evaluated as often as needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from outlive._cel.checking import type_of_node
from outlive._cel.errors import ExpressionError
from outlive._cel.evaluating import Code, code_of, passes_data
from outlive._cel.parsing import parse_tokens, plain_path
from outlive._cel.syntax import Local, Node, children, references_of
from outlive._cel.tokens import tokens_of
from outlive._cel.types import Type
from outlive._cel.values import Frame, refuse_length, refuse_size

REMEMBERED_MAX = 200
"""Characters. A longer expression is read again each time: thousands of them kept would be hundreds of megabytes, which
the garbage collector goes through again and again."""


class CheckedTypes(dict[str, "Type"]):
    """The types of a scope, and those of the expressions that were checked in it: a document asks for them several
    times."""

    def __init__(self, types: Mapping[str, Type]) -> None:
        super().__init__(types)
        self.known: dict[Expression, Type] = {}


class Expression:
    """A value that is computed from plain data: total, deterministic and bounded."""

    __slots__ = ("_code", "_makes", "_variables", "references", "text", "tree")

    def __init__(self, text: str, tree: Node) -> None:
        self.text = text
        """Its source."""
        self.tree = tree
        self.references = references_of(tree)
        """The references to its scope, each as the names along its path: ("steps", "reserve", "id")."""
        # Made when it is needed first: documents are checked far more often than each of their expressions is run.
        self._code: Code | None = None
        self._makes = False
        self._variables = 0

    def evaluate(self, scope: Mapping[str, Any]) -> Any:
        """Its value for the data of a scope.

        Raises:
            ExpressionError: it has no value for this data; says why, and what was found.
        """
        try:
            return self.run(scope)
        except ExpressionError as error:
            raise plain(error) from None

    def run(self, scope: Mapping[str, Any]) -> Any:
        """Like `evaluate`, with errors that say whether a value was missing."""
        try:
            value = (self._code or self._compile())(Frame(scope, self._variables))
            if self._makes:
                kind = type(value)
                if kind is dict or kind is list:
                    refuse_size(value)
                elif kind is str:
                    refuse_length(len(value))
        except ExpressionError as error:
            raise error.within(self.text) from None
        except RecursionError:
            raise ExpressionError("it is nested too deeply", 0, expression=self.text) from None
        return value

    def _compile(self) -> Code:
        self._makes = not passes_data(self.tree)
        self._variables = _variables_of(self.tree)
        self._code = code = code_of(self.tree)
        return code

    def check(self, types: Mapping[str, Type]) -> Type:
        """The type of its value, for a scope of which the types are known.

        Raises:
            ExpressionError: a name or a field that is not there, or values that do not go together.
        """
        known = types.known if isinstance(types, CheckedTypes) else {}
        if self in known:
            return known[self]
        try:
            known[self] = found = type_of_node(self.tree, types)
            return found
        except ExpressionError as error:
            raise error.within(self.text) from None
        except RecursionError:
            raise ExpressionError("it is nested too deeply", 0, expression=self.text) from None

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def parse(text: str) -> Expression:
    """Read an expression.

    Raises:
        ExpressionError: it is none; says at which character, and what to write instead.
    """
    return remembered(text) if len(text) <= REMEMBERED_MAX else _read(text)


def _read(text: str) -> Expression:
    try:
        return Expression(text, plain_path(text) or parse_tokens(tokens_of(text)))
    except ExpressionError as error:
        raise error.within(text) from None
    except RecursionError:
        raise ExpressionError("it is nested too deeply", 0, expression=text) from None


remembered = lru_cache(maxsize=4096)(_read)


def plain(error: ExpressionError) -> ExpressionError:
    """The error without its inner kind."""
    return ExpressionError(error.message, error.offset, error.suggestion, error.expression)


def _variables_of(tree: Node) -> int:
    """How many places the variables of its macros need."""
    count, left = 0, [tree]
    while left:
        node = left.pop()
        if isinstance(node, Local):
            count = max(count, node.slot + 1)
        left += children(node)
    return count
