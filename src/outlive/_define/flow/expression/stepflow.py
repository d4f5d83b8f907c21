"""References in Stepflow's form, read as paths of our own: `{$step: reserve, path: "$.items[0]"}`."""

from __future__ import annotations

import re
from typing import Any

from outlive._define.flow.expression.syntax import Index, Literal, Name, Node, Select
from outlive.errors.program import ExpressionError

FORMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "$step": ((), ("path", "default")),
    "$input": ((), ("default",)),
    "$variable": ((), ("default",)),
    "$literal": ((), ()),
    "$if": (("then",), ("else",)),
    "$coalesce": ((), ()),
}
"""The word of each form, and what must and what may stand beside it."""

_PATH_CHARACTERS_MAX = 1000
_PARTS_MAX = 100
_PART = re.compile(
    r"""\.?(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|\[(?P<index>[0-9]{1,9})\]|\['(?P<single>[^'\]]*)'\]|\["(?P<double>[^"\]]*)"\]"""
)


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


def _parts(path: str) -> list[str | int]:
    """The names and numbers along `$.a.b[0]["c"]`."""
    text = path.removeprefix("$")
    found: list[str | int] = []
    at = 0
    while at < len(text):
        match = _PART.match(text, at)
        if match is None or len(path) > _PATH_CHARACTERS_MAX or len(found) >= _PARTS_MAX:
            raise ExpressionError(f"{path[:100]!r} is no path", suggestion="write it like $.items[0].id")
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
