"""Writes `src/api.ts`, the typed part of the client, from docs/openapi.json: a part of `make generate`.

An interface for each schema, a class for each namespace of operations, a method for each operation. Everything else
of the client is in `src/transport.ts`, which is written by hand and knows no operation.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[1] / "docs" / "openapi.json"
TARGET = HERE / "src" / "api.ts"
HEAD = """// Written by `make generate` from docs/openapi.json.
import { type Message, type Options, type RequestOptions, Transport } from "./transport.ts";
"""
CLIENT = "Outlive"
EVENTS = "text/event-stream"
JSON = "application/json"
_REF = "#/components/schemas/"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_WORD = re.compile(r"[A-Za-z_$][\w$]*")


def source_of(document: dict[str, Any]) -> str:
    """The file for a document."""
    schemas = document["components"]["schemas"]
    operations = sorted(_operations(document), key=lambda it: it["operationId"])
    spaces = {
        space: list(found) for space, found in groupby(operations, lambda it: it["operationId"].partition(".")[0])
    }
    parts = [HEAD, *(_schema(name, schema) for name, schema in schemas.items())]
    parts += [part for it in operations if (part := _query(it))]
    parts += [_space(name, found) for name, found in spaces.items()]
    parts.append(_client(document["info"]["description"], list(spaces)))
    return "\n".join(parts)


def _operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield operation | {"path": path, "method": method.upper()}


# -- Types -------------------------------------------------------------------------------------------------------


def _schema(name: str, schema: dict[str, Any]) -> str:
    said = _said(schema.get("description", ""), "")
    if schema.get("type") != "object" or "properties" not in schema:
        return f"{said}export type {name} = {_type(schema)};\n"
    return f"{said}export interface {name} {_fields(schema, '')}\n"


def _fields(schema: dict[str, Any], indent: str) -> str:
    required = schema.get("required", ())
    lines = ["{"]
    for name, own in schema["properties"].items():
        mark = "" if name in required else "?"
        lines.append(f"{_said(own.get('description', ''), indent + '  ')}{indent}  {_key(name)}{mark}: {_type(own)};")
    return "\n".join([*lines, indent + "}"])


def _type(schema: dict[str, Any]) -> str:
    """A schema as a type."""
    match schema:
        case {"$ref": ref}:
            return str(ref).removeprefix(_REF)
        case {"const": value}:
            return json.dumps(value)
        case {"enum": values}:
            return " | ".join(json.dumps(value) for value in values)
        case {"allOf": [one]}:
            return _type(one)
        case {"anyOf": kinds} | {"oneOf": kinds}:
            found = list(dict.fromkeys(_type(kind) for kind in kinds))
            return "unknown" if "unknown" in found else " | ".join(found)
        case {"type": "array", "prefixItems": kinds}:
            return f"[{', '.join(_type(kind) for kind in kinds)}]"
        case {"type": "array"}:
            inner = _type(schema.get("items", {}))
            return f"({inner})[]" if " " in inner else f"{inner}[]"
        case {"type": "object", "properties": _}:
            return _fields(schema, "")
        case {"type": "object"}:
            more = schema.get("additionalProperties")
            return f"Record<string, {_type(more) if isinstance(more, dict) else 'unknown'}>"
        case {"type": str(plain)}:
            return _PLAIN[plain]
        case _:
            return "unknown"


def _query(it: dict[str, Any]) -> str:
    parameters = [each for each in it.get("parameters", ()) if each["in"] == "query"]
    if not parameters:
        return ""
    schema = {
        "properties": {
            each["name"]: each["schema"] | {"description": each.get("description", "")} for each in parameters
        },
        "required": [each["name"] for each in parameters if each["required"]],
    }
    said = f"/** What `{it['operationId']}` may be asked for. */"
    return f"{said}\nexport interface {_query_name(it)} {_fields(schema, '')}\n"


def _query_name(it: dict[str, Any]) -> str:
    return _upper(it["operationId"].replace(".", "_")) + "Query"


# -- Operations --------------------------------------------------------------------------------------------------


def _space(name: str, operations: list[dict[str, Any]]) -> str:
    methods = "\n\n".join(_method(it) for it in operations)
    return (
        f"export class {_upper(name)}Operations {{\n  #to: Transport;\n\n"
        f"  constructor(to: Transport) {{\n    this.#to = to;\n  }}\n\n{methods}\n}}\n"
    )


def _method(it: dict[str, Any]) -> str:
    name = _lower(it["operationId"].partition(".")[2])
    paths = [each["name"] for each in it.get("parameters", ()) if each["in"] == "path"]
    given = [f"{_lower(each)}: string" for each in paths]
    parts = []
    if "requestBody" in it:
        mark = "" if it["requestBody"]["required"] else "?"
        given.append(f"body{mark}: {_type(it['requestBody']['content'][JSON]['schema'])}")
        parts.append("body")
    queries = [each for each in it.get("parameters", ()) if each["in"] == "query"]
    if queries:
        given.append(f"query{'' if any(each['required'] for each in queries) else '?'}: {_query_name(it)}")
        parts.append("query")
    kind, returned = _answer(it)
    given.append("options?: RequestOptions")
    parts.append("options")
    path = re.sub(r"\{(\w+)\}", lambda found: f"${{encodeURIComponent({_lower(found[1])})}}", it["path"])
    said = _said(it["summary"] + "\n\n" + it.get("description", ""), "  ")
    called = f'this.#to.{kind}("{it["method"]}", `{path}`, {{ {", ".join(parts)} }})'
    return f"{said}  {name}({', '.join(given)}): {returned} {{\n    return {called};\n  }}"


def _answer(it: dict[str, Any]) -> tuple[str, str]:
    """How the transport asks for what an operation answers, and its type."""
    good = [answer for status, answer in it["responses"].items() if status.startswith("2")]
    contents = [content for answer in good for content in answer.get("content", {}).items()]
    medias = {media for media, _ in contents}
    if EVENTS in medias:
        (shown,) = [content for media, content in contents if media == EVENTS]
        kinds = [f'Message<"{name}", {_type(schema)}>' for name, schema in shown.get("x-messages", {}).items()]
        return "follow", f"AsyncGenerator<{' | '.join(kinds) or 'Message'}>"
    if JSON in medias:
        kinds = list(dict.fromkeys(_type(content["schema"]) for media, content in contents if media == JSON))
        return "json", f"Promise<{' | '.join(kinds)}>"
    return ("text", "Promise<string>") if medias else ("nothing", "Promise<void>")


def _client(about: str, spaces: list[str]) -> str:
    fields = "\n".join(f"  readonly {_lower(name)}: {_upper(name)}Operations;" for name in spaces)
    made = "\n".join(f"    this.{_lower(name)} = new {_upper(name)}Operations(to);" for name in spaces)
    begins = "  constructor(url: string, options: Options = {}) {\n    const to = new Transport(url, options);"
    return f"{_said(about, '')}export class {CLIENT} {{\n{fields}\n\n{begins}\n{made}\n  }}\n}}\n"


# -- Text --------------------------------------------------------------------------------------------------------


def _said(text: str, indent: str) -> str:
    """A comment for people and editors; empty for no text."""
    lines = [line for paragraph in text.strip().split("\n") for line in textwrap.wrap(paragraph, 116) or [""]]
    if not lines or lines == [""]:
        return ""
    lines = [line.replace("*/", "*\\/") for line in lines]
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return "\n".join([f"{indent}/**", *(f"{indent} * {line}".rstrip() for line in lines), f"{indent} */"]) + "\n"


def _key(name: str) -> str:
    return name if _WORD.fullmatch(name) else json.dumps(name)


def _lower(name: str) -> str:
    """`list_stuck` as `listStuck`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _upper(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.split("_"))


def main() -> None:
    """Write the file."""
    TARGET.write_text(source_of(json.loads(DOCUMENT.read_bytes())), "utf-8")


if __name__ == "__main__":
    main()
