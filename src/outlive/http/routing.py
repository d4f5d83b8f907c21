"""Which operation a request is for: by the parts of its path, each decoded on its own.

A path is not repaired: one with an empty part, a dot, or a slash at its end is none of ours. So what is checked is what
is used, and no spelling of a path slips past a check of another spelling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

from outlive.http.exchange import Scope
from outlive.http.operation import Operation
from outlive.http.problem import Problem, malformed

PARTS_MAX = 16
_NAME = "{}"


class Node:
    """The continuations of the parts of a path so far."""

    __slots__ = ("by_name", "by_part", "operations")

    def __init__(self) -> None:
        self.by_part: dict[str, Node] = {}
        self.by_name: Node | None = None
        self.operations: dict[str, Operation] = {}
        """By their methods."""


class Routes:
    """All operations, by path and method."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._root = Node()
        for operation in operations:
            self._add(operation)

    def _add(self, operation: Operation) -> None:
        node = self._root
        for part in operation.path.strip("/").split("/"):
            if part.startswith("{"):
                node.by_name = node.by_name or Node()
                node = node.by_name
            else:
                node = node.by_part.setdefault(part, Node())
        node.operations[operation.method] = operation

    def find(self, parts: list[str], method: str) -> tuple[Node, list[str]] | None:
        """The operations at a path, and the names in it; None if there are none.

        Plain parts go before names, where they take the method: `POST /flows/check` checks a document, and
        `GET /flows/check` is the flow of that name.
        """
        found = list(_find(self._root, parts, 0, []))
        return next((it for it in found if known_at(it, method) is not None), found[0] if found else None)


def _find(node: Node, parts: list[str], at: int, names: list[str]) -> Iterator[tuple[Node, list[str]]]:
    if at == len(parts):
        if node.operations:
            yield node, names
        return
    part = parts[at]
    if (next_node := node.by_part.get(part)) is not None:
        yield from _find(next_node, parts, at + 1, names)
    if node.by_name is not None and part:
        yield from _find(node.by_name, parts, at + 1, [*names, part])


def known_at(found: tuple[Node, list[str]] | None, method: str) -> Operation | None:
    """The operation of a method at a path; None if there is none."""
    return None if found is None else found[0].operations.get("GET" if method == "HEAD" else method)


def operation_at(found: tuple[Node, list[str]] | None, method: str) -> tuple[Operation, dict[str, str]]:
    """The operation of a method, and the names in its path.

    Raises:
        Problem: there is no such path, or it does not take this method.
    """
    if found is None:
        raise Problem(
            404, "not_found", "this server has nothing at this path", "GET /api/v1/openapi.json lists what it has."
        )
    node, values = found
    operation = known_at(found, method)
    if operation is None:
        allowed = ", ".join(sorted({*node.operations, *(["HEAD"] if "GET" in node.operations else [])}))
        raise Problem(
            405,
            "method_not_allowed",
            f"this path does not take {method[:20]}",
            f"It takes {allowed}.",
            {"allow": allowed},
        )
    return operation, dict(zip(operation.names, values, strict=True))


def parts_of(scope: Scope) -> list[str]:
    """The parts of the path of a request below the place where the app is mounted, decoded.

    Raises:
        Problem: the path is not text, has more parts than any path of the API, or spells the mount differently.
    """
    path, root = str(scope["path"]), str(scope.get("root_path") or "").rstrip("/")
    if not path.startswith("/"):
        # A whole address, or `*`: what is before the first slash would be left out.
        raise _nothing_here()
    raw: bytes = scope.get("raw_path") or b""
    raw = raw.partition(b"?")[0]
    is_under_root = bool(root) and path.startswith(f"{root}/")
    if b"%" in raw and _decoded(raw) == path:
        # A part may hold a slash that is written %2F: only the path as it was sent says so.
        parts = [_decoded(part) for part in raw.split(b"/")][1:]
        if is_under_root:
            mount, parts = parts[: root.count("/")], parts[root.count("/") :]
            if mount != root.split("/")[1:]:
                # A slash of the mount is written as %2F: the application around us counts other parts than we do.
                raise _nothing_here()
    else:
        below = path[len(root) :] if is_under_root else path
        parts = below.split("/")[1:]
    if len(parts) > PARTS_MAX:
        raise _nothing_here()
    return parts


def _nothing_here() -> Problem:
    return Problem(404, "not_found", "this server has nothing at this path", "Look at the path.")


def _decoded(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        raise malformed("the path is not text in UTF-8") from None


def below(scope: Scope, prefix: str) -> dict[str, Any]:
    """The scope of a request for an app that is mounted at a prefix of this one."""
    root = str(scope.get("root_path") or "").rstrip("/")
    return {**scope, "root_path": f"{root}/{prefix}"}
