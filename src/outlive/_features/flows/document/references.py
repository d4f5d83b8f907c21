"""Values of a document: plain data with expressions (`_cel`), and with references in Stepflow's form.

Such a reference is read as a path of our own: `{$step: reserve, path: "$.items[0]"}` is `steps.reserve.items[0]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from outlive._cel import ExpressionError, Template, template
from outlive._cel.syntax import Index, Literal, Name, Node, Select
from outlive._cel.template import Path, ReferenceForms
from outlive.errors import program

_PATH_CHARACTERS_MAX = 1000
_PARTS_MAX = 100
_PART = re.compile(
    r"""\.?(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|\[(?P<index>[0-9]{1,9})\]|\['(?P<single>[^'\]]*)'\]|\["(?P<double>[^"\]]*)"\]"""
)


def compile_value(value: Any, problems: list[tuple[Path, ExpressionError]] | None = None) -> Template:
    """Parse every expression and every reference in a value of a document; see `_cel.compile_value`.

    Raises:
        ExpressionError: the first text or object that cannot be read.
    """
    return template.compile_value(value, problems, references=_FORMS)


def compile_cases(value: dict[str, Any]) -> Template:
    """A template for the arguments of `switch`; see `_cel.compile_cases`.

    Raises:
        ExpressionError: the first text or object that cannot be read.
    """
    return template.compile_cases(value, references=_FORMS)


@contextmanager
def expression_errors() -> Iterator[None]:
    """Raise the errors of expressions as errors of Outlive: the language has its own.

    Raises:
        program.ExpressionError: an expression cannot be read, or has no value.
    """
    try:
        yield
    except ExpressionError as error:
        raise program.ExpressionError(
            str(error),
            message=error.message,
            offset=error.offset,
            suggestion=error.suggestion,
            expression=error.expression,
        ) from None


def reference(form: str, given: Any, path: Any) -> tuple[str, Node]:
    """The path that a reference means, as source and as tree.

    Raises:
        ExpressionError: what is given is not a path.
    """
    if type(given) is not str or type(path) is not str:
        raise ExpressionError(f"{form} and its path are texts")
    if form == "$step":
        return _node("steps", [given, *_parts(path)])
    return _node("input" if form == "$input" else "vars", _parts(given))


def _read(form: str, value: Mapping[str, Any]) -> tuple[str, Node]:
    return reference(form, value[form], value.get("path", "$"))


_FORMS = ReferenceForms({"$step": ("path",), "$input": (), "$variable": ()}, _read)


def _parts(path: str) -> list[str | int]:
    """The names and numbers along `$.a.b[0]["c"]`."""
    text = path.removeprefix("$")
    found: list[str | int] = []
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or len(path) > _PATH_CHARACTERS_MAX or len(found) >= _PARTS_MAX:
            raise ExpressionError(f"{path[:100]!r} is not a path", suggestion="write it like $.items[0].id")
        at = match.end()
        if match["index"] is not None:
            found.append(int(match["index"]))
        else:
            found.append(next(match[name] for name in ("name", "single", "double") if match[name] is not None))
    return found


def _node(root: str, parts: list[str | int]) -> tuple[str, Node]:
    text, node = root, Name(0, root)
    tree: Node = node
    for part in parts:
        if type(part) is str and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", part):
            tree = Select(len(text) + 1, tree, part, False)
            text += f".{part}"
        else:
            tree = Index(len(text), tree, Literal(len(text) + 1, part), False)
            text += f"[{part}]" if type(part) is int else f'["{part}"]'
    return text, tree
