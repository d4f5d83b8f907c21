"""Writes what is made of the table of operations: a part of `make generate`."""

from __future__ import annotations

import runpy
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from outlive.http.operation import OPERATIONS, Operation
from outlive.http.operations.document import document_bytes

DOCS = Path(__file__).parents[2] / "docs"
CLIENT = DOCS.parent / "clients" / "typescript" / "generate.py"
FILTERS = DOCS.parent / "src" / "outlive" / "dashboard" / "static" / "filters.js"
SCRIPT_WIDTH = 120
KINDS = {"string": "text", "boolean": "flag"}
HEAD = """# Operations of the HTTP API

What each takes and answers is in [openapi.json](../openapi.json), which a server has at `/api/v1/openapi.json` and
shows to people at `/api/v1/docs`; how they are used is in [the guide](../guides/http-api.md). Webhooks of flows are
below `/webhooks`. `make generate` writes this page.
"""


def table() -> str:
    """The page with all operations."""
    parts = [HEAD]
    ordered = sorted(OPERATIONS.values(), key=attrgetter("namespace", "path", "method"))
    for namespace, found in groupby(ordered, key=attrgetter("namespace")):
        parts.append(f"\n## {namespace.capitalize()}\n\n| Id | Operation | Scope | Does |\n|---|---|---|---|\n")
        parts += [_row(it) for it in found]
    return "".join(parts)


def _row(it: Operation) -> str:
    return f"| `{it.name}` | `{it.method} {it.path}` | `{it.scope}` | {it.promise} |\n"


def filters() -> str:
    """The filters of a list of runs for the dashboard: the parameters of one value that counting takes too."""
    paths = msgspec.json.decode(document_bytes())["paths"]
    found = [it for it in paths["/api/v1/runs/count"]["get"]["parameters"] if it["schema"].get("type") in KINDS]
    rows = [_listed(f"name: '{it['name']}'", f"kind: '{_kind(it['schema'])}'", f"hint: {_hint(it)}") for it in found]
    head = "// The filters of a list of runs: `make generate` writes this file from the document of the API.\n"
    return f"// @ts-check\n{head}export const FILTERS = [\n{''.join(rows)}];\n"


def _listed(*fields: str) -> str:
    """An object in a list, as prettier writes it."""
    row = f"  {{ {', '.join(fields)} }},\n"
    return row if len(row) <= SCRIPT_WIDTH else "  {\n" + "".join(f"    {field},\n" for field in fields) + "  },\n"


def _kind(schema: dict[str, Any]) -> str:
    return "instant" if schema.get("format") == "date-time" else KINDS[schema["type"]]


def _hint(it: dict[str, Any]) -> str:
    return repr(it.get("description", "").replace("`", ""))


if __name__ == "__main__":
    (DOCS / "openapi.json").write_bytes(document_bytes())
    (DOCS / "reference" / "operations.md").write_text(table(), "utf-8")
    FILTERS.write_text(filters(), "utf-8")
    runpy.run_path(str(CLIENT), run_name="__main__")
