"""Reads a request beyond its path: its parameters and its body, each by the type that its operation has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from outlive._garbage_collection import collection_paused
from outlive.http.exchange import Request
from outlive.http.nesting import CONTAINERS_MAX, DEPTH_MAX, holds_more, is_deeper
from outlive.http.operation import Operation
from outlive.http.problem import Problem, malformed

PARAMETERS_MAX = 100


def read_query(operation: Operation, query_string: bytes) -> Any:
    """The parameters behind the question mark.

    Raises:
        Problem: there are others, or they cannot be read.
    """
    if not query_string and operation.query is None:
        return None
    try:
        pairs = parse_qsl(
            query_string.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX
        )
    except ValueError as error:
        raise malformed(f"the parameters of the query cannot be read: {error}") from None
    if operation.query is None:
        if pairs:
            raise malformed(f"{operation.name} takes no parameter {pairs[0][0][:100]!r}")
        return None
    lists = lists_in(operation.query)
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in lists:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise malformed(f"the parameter {name[:100]!r} is given twice")
        else:
            found[name] = value
    try:
        return msgspec.convert(found, operation.query, strict=False)
    except msgspec.ValidationError as error:
        raise malformed(f"the parameters of the query do not fit: {_shown(error, operation.query)}") from None


@cache
def lists_in(query: Any) -> frozenset[str]:
    """The parameters that may be given several times."""
    hints = get_type_hints(query)
    return frozenset(name for name, hint in hints.items() if _is_list(hint))


def _is_list(hint: Any) -> bool:
    return get_origin(hint) in (list, tuple) or any(_is_list(each) for each in get_args(hint))


def check_media(operation: Operation, request: Request) -> None:
    """See that the body is JSON, and not packed.

    Raises:
        Problem: it says that it is something else, or nothing. A form of a page can send neither.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(
            415,
            "unsupported_media_type",
            f"{operation.name} takes no body that is compressed",
            "Send the body as it is, without Content-Encoding.",
            {"accept-encoding": "identity"},
        )
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    length = request.headers.get("content-length", "")
    has_body = "transfer-encoding" in request.headers or length not in ("", "0")
    if media == "application/json" or (not has_body and (operation.body is None or operation.is_optional_body)):
        return
    raise Problem(
        415,
        "unsupported_media_type",
        f"{operation.name} takes JSON" if operation.body is not None else f"{operation.name} takes no such body",
        "Send Content-Type: application/json.",
    )


def read_body(operation: Operation, body: bytes) -> Any:
    """The JSON of a body.

    Raises:
        Problem: it is none, is nested too deep, or does not fit.
    """
    if operation.body is None:
        if body.strip():
            raise malformed(f"{operation.name} takes no body")
        return None
    if not body and operation.is_optional_body:
        return operation.body()
    if is_deeper(body, DEPTH_MAX):
        raise malformed(f"the body is nested more than {DEPTH_MAX} levels deep")
    if holds_more(body, CONTAINERS_MAX):
        raise malformed(f"the body holds more than {CONTAINERS_MAX:,} maps and lists")
    try:
        with collection_paused():  # Python's collector would look again and again at what the parser makes.
            return operation.read_body(body)
    except msgspec.ValidationError as error:
        raise malformed(f"the body does not fit: {_shown(error, operation.body)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise malformed(f"the body is not JSON: {error}") from None


def _shown(error: msgspec.ValidationError, kind: Any) -> str:
    """The mistake, and the possible values if the given one is not among a few."""
    found = _NO_CHOICE.match(str(error))
    if found is None:
        return str(error)
    kinds = [kind]
    for name in _FIELD.findall(found[1]):
        fields = [get_type_hints(each) for each in _flat(kinds) if isinstance(each, type)]
        kinds = [hints[name] for hints in fields if name in hints]
    choices = [repr(value) for each in _flat(kinds) if get_origin(each) is Literal for value in get_args(each)]
    return f"{error}; give {' or '.join(choices)}" if choices else str(error)


def _flat(kinds: Iterable[Any]) -> Iterator[Any]:
    """Types, and the types that they are made of."""
    for kind in kinds:
        yield kind
        if get_origin(kind) is not Literal:
            yield from _flat(get_args(kind))


_NO_CHOICE = re.compile(r"Invalid enum value .* - at `\$(.*)`")
_FIELD = re.compile(r"\.(\w+)")
