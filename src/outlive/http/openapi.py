"""The OpenAPI 3.1 document, made of the table of operations: of the same types that read the requests.

What a struct says of its fields, in the strings below them, is read from its source: the document is made once for each
process, when it is asked for.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

import msgspec

from outlive.errors import InvalidArgumentError, OutliveError
from outlive.http.operation import JSON, Operation
from outlive.http.principal import NO_SCOPE
from outlive.http.problem import MEDIA, ProblemBody, status_of, title_of
from outlive.http.reading import lists_in

TITLE = "Outlive"
VERSION = "1"
_REF = "#/components/schemas/{name}"
_JSON = {"None": "null", "True": "true", "False": "false"}
_PYTHON = re.compile(rf"\b({'|'.join(_JSON)})\b")
_SPAN = r"^-?P(\d+D)?(T\d+(\.\d+)?S)?$"
"""A span of ISO 8601, as msgspec writes it."""
_ANY_REQUEST = (400, 401, 403, 405, 429, 500, 503)
_WITH_BODY = (408, 413, 415)
_ABOUT = """Durable workflows over HTTP.

Every answer that is an error is a problem of RFC 9457 with the name of the error and what to do next. A request that
changes something may be sent again with the same `Idempotency-Key`: nothing happens twice."""


def document_of(operations: Iterable[Operation]) -> dict[str, Any]:
    """The document of these operations."""
    ordered = sorted(operations, key=lambda it: (it.path, it.method))
    parts = [kind for it in ordered for kind in (it.body, it.query, *it.answers.values(), *it.messages.values())]
    kinds = [kind for kind in parts if is_struct(kind)]
    _, components = msgspec.json.schema_components([*kinds, ProblemBody], ref_template=_REF)
    structs = {kind.__name__: kind for kind in _with_parts([*kinds, ProblemBody])}
    sent = _with_parts(kind for it in ordered for kind in (it.body, it.query) if is_struct(kind))
    for name, schema in components.items():
        _describe(schema, structs.get(name))
        _show_instants(schema, structs.get(name))
        _show_spans(schema)
        if structs.get(name) not in sent:
            _require_all(schema)
    queries = {it.query.__name__ for it in ordered if it.query is not None}
    paths: dict[str, Any] = {}
    for it in ordered:
        paths.setdefault(it.path, {})[it.method.lower()] = _entry(it, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": TITLE, "version": VERSION, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": {name: it for name, it in sorted(components.items()) if name not in queries},
            "responses": {str(it): _problem(title_of(it)) for it in sorted((*_ANY_REQUEST, *_WITH_BODY))},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def is_struct(kind: Any) -> bool:
    """Whether a type is a struct of the wire."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _entry(it: Operation, components: dict[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"operationId": it.name, "tags": [it.namespace], "summary": it.promise}
    said = [it.explanation] if it.explanation else []
    said += ["Needs no key." if it.scope == NO_SCOPE else f"Needs the scope `{it.scope}`."]
    entry["description"] = "\n\n".join(said)
    if it.scope == NO_SCOPE:
        entry["security"] = []
    text = {"type": "string", "minLength": 1}
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": text} for name in it.names
    ]
    if it.query is not None:
        parameters += _query_parameters(it.query, components)
    if it.method != "GET":
        parameters.append(_KEY)
    if parameters:
        entry["parameters"] = parameters
    if it.body is not None:
        schema = {"$ref": _REF.format(name=it.body.__name__)}
        entry["requestBody"] = {"required": not it.is_optional_body, "content": {JSON: {"schema": schema}}}
    entry["responses"] = _responses(it)
    return entry


_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 500, "pattern": "^[ -~]+$"},
    "description": "The same key again is the same request.",
}


def _query_parameters(query: Any, components: dict[str, Any]) -> list[dict[str, Any]]:
    schema = components[query.__name__]
    found = []
    for name, own in schema["properties"].items():
        shown = dict(own)
        description = shown.pop("description", "")
        parameter: dict[str, Any] = {"name": name, "in": "query", "required": name in schema.get("required", ())}
        parameter["schema"] = _without_null(shown)
        if name in lists_in(query):
            parameter |= {"style": "form", "explode": True}
        found.append(parameter | ({"description": description} if description else {}))
    return found


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A parameter is given or not; it is never null."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    schema = {name: value for name, value in schema.items() if not (name == "default" and value is None)}
    if not kinds:
        return schema
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    return rest | (kinds[0] if len(kinds) == 1 else {"anyOf": kinds})


def _responses(it: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, kind in it.answers.items():
        answer: dict[str, Any] = {"description": _promise_of(kind) if is_struct(kind) else title_of(status)}
        if is_struct(kind):
            answer["content"] = {it.media: {"schema": {"$ref": _REF.format(name=kind.__name__)}}}
        elif kind is not None:
            answer["content"] = {it.media: {"schema": {} if it.media == JSON else {"type": "string"}} | _messages(it)}
        found[str(status)] = answer
    names: dict[int, list[str]] = {status: [] for status in _ANY_REQUEST}
    names |= {status: [] for status in _WITH_BODY if it.method != "GET"}
    refuses: tuple[type[OutliveError], ...] = (InvalidArgumentError,) if it.names or it.query or it.body else ()
    for error in (*refuses, *it.raises):
        answered = status_of(error)
        assert answered is not None, f"{it.name}: {error.__name__} has no status in the table of problems"
        names.setdefault(answered, []).append(error.code)
    for status in sorted(names):
        if str(status) in found:
            continue
        if own := ", ".join(f"`{name}`" for name in names[status]):
            found[str(status)] = _problem(f"{title_of(status)}: {own}")
        else:
            found[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return {status: _with_page(answer, status) for status, answer in found.items()} if it.is_page else found


def _messages(it: Operation) -> dict[str, Any]:
    """The messages of a stream, by their names; OpenAPI 3.1 has no word for it."""
    schemas = {
        name: {"$ref": _REF.format(name=kind.__name__)} if is_struct(kind) else {"type": "object"}
        for name, kind in it.messages.items()
    }
    return {"x-messages": schemas} if schemas else {}


def _with_page(answer: dict[str, Any], status: str) -> dict[str, Any]:
    """An answer of which a browser gets a page."""
    own = answer if "content" in answer else _problem(title_of(int(status)))
    return own | {"content": own["content"] | {"text/html": {"schema": {"type": "string"}}}}


def _problem(description: str) -> dict[str, Any]:
    schema = {"$ref": _REF.format(name=ProblemBody.__name__)}
    return {"description": description, "content": {MEDIA: {"schema": schema}}}


# -- What structs say of themselves ------------------------------------------------------------------------------


def _with_parts(kinds: Iterable[Any]) -> set[Any]:
    """Structs, and the structs that they are made of."""
    found: set[Any] = set()
    left = list(kinds)
    while left:
        kind = left.pop()
        if kind in found:
            continue
        found.add(kind)
        left += [part for field in msgspec.structs.fields(kind) for part in _structs_in(field.type)]
    return found


def _structs_in(hint: Any) -> Iterable[Any]:
    if is_struct(hint):
        yield hint
    for each in getattr(hint, "__args__", ()):
        yield from _structs_in(each)


def _promise_of(kind: Any) -> str:
    return inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]


def _describe(schema: dict[str, Any], kind: Any) -> None:
    """Add what a struct says of its fields."""
    if kind is None:
        return
    said = _said_of(kind)
    for name, own in schema.get("properties", {}).items():
        if name in said:
            if "$ref" in own:
                schema["properties"][name] = {"allOf": [own], "description": said[name]}
            else:
                own["description"] = said[name]


def _show_instants(schema: dict[str, Any], kind: Any) -> None:
    """Say which texts of an answer are instants."""
    for field in () if kind is None else msgspec.structs.fields(kind):
        own = schema.get("properties", {}).get(field.encode_name, {})
        if datetime in (field.type, *getattr(field.type, "__args__", ())):
            for text in _texts_in(own):
                text["format"] = "date-time"


def _show_spans(schema: dict[str, Any]) -> None:
    """Give spans of time their pattern: the `duration` of JSON Schema has neither fractions of a second nor a sign."""
    for own in schema.get("properties", {}).values():
        for text in _texts_in(own):
            if text.get("format") == "duration":
                del text["format"]
                text["pattern"] = _SPAN


def _texts_in(own: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a field's schema that are texts."""
    return [each for each in (own, own.get("items", {}), *own.get("anyOf", ())) if each.get("type") == "string"]


def _require_all(schema: dict[str, Any]) -> None:
    """Say that every field is there: an answer has them all, and a caller need not know what they are by default."""
    if properties := schema.get("properties"):
        schema["required"] = list(properties)
    for own in schema.get("properties", {}).values():
        own.pop("default", None)


@cache
def _said_of(kind: Any) -> dict[str, str]:
    """The strings below the fields of a struct, and of its bases."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if not is_struct(each) or each is msgspec.Struct:
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, next_line in zip(body.body, body.body[1:], strict=False):
            match field, next_line:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = _PYTHON.sub(lambda it: _JSON[it[0]], " ".join(text.split()))
                case _:
                    continue
    return found
