"""The docs page: every operation, made of the OpenAPI document on the server. It needs no script and no other host."""

from __future__ import annotations

from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #888; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
details { border-top: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; }
summary code { font-weight: 600; }
summary span { color: var(--soft); }
table { border-collapse: collapse; margin: .5rem 0 1rem; width: 100%; }
td { border-top: 1px solid var(--line); padding: .25rem .75rem .25rem 0; vertical-align: top; }
pre { overflow-x: auto; padding: .5rem; border: 1px solid var(--line); }
"""


def page_of(document: dict[str, Any]) -> str:
    """The page of an OpenAPI document."""
    groups: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, entry in methods.items():
            groups.setdefault(entry["tags"][0], []).append(_operation(path, method.upper(), entry, document))
    body = "".join(
        f"<h2 id={escape(name)!r}>{escape(name)}</h2>{''.join(each)}" for name, each in sorted(groups.items())
    )
    info = document["info"]
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(info['title'])} API</title>"
        "<link rel='stylesheet' href='docs.css'></head><body>"
        f"<h1>{escape(info['title'])} API</h1><p>{escape(info['description'])}</p>"
        f"<p><a href='openapi.json'>OpenAPI 3.1 document</a></p>{body}</body></html>"
    )


def _operation(path: str, method: str, entry: dict[str, Any], document: dict[str, Any]) -> str:
    parts = [f"<p>{escape(entry['description'])}</p>"]
    if parameters := entry.get("parameters"):
        rows = [[it["name"], it["in"], _type(it["schema"]), it.get("description", "")] for it in parameters]
        parts.append(_table(rows))
    if content := entry.get("requestBody"):
        schema = next(iter(content["content"].values()))["schema"]
        parts.append(f"<p>Body:</p>{_table(_fields(schema, document))}")
    rows = [[status, it["description"]] for status, it in entry["responses"].items() if "$ref" not in it]
    parts.append(f"<p>Answers:</p>{_table(rows)}")
    return (
        f"<details id={escape(entry['operationId'])!r}><summary><code>{method} {escape(path)}</code> "
        f"<span>{escape(entry['summary'])}</span></summary>{''.join(parts)}</details>"
    )


def _fields(schema: dict[str, Any], document: dict[str, Any]) -> list[list[str]]:
    name = schema["$ref"].rpartition("/")[2]
    found = document["components"]["schemas"][name]
    needed = found.get("required", ())
    return [
        [field, "required" if field in needed else "", _type(own), own.get("description", "")]
        for field, own in found["properties"].items()
    ]


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(str(each) for each in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(each) for each in schema["anyOf"])
    kind = str(schema.get("type", "any"))
    return f"list of {_type(schema.get('items', {}))}" if kind == "array" else kind


def _table(rows: list[list[str]]) -> str:
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return "<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>"
