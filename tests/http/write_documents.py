"""Writes what is made of the table of operations: a part of `make generate`."""

from __future__ import annotations

import runpy
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from outlive.http.operation import OPERATIONS, Operation
from outlive.http.operations.document import document_bytes

DOCS = Path(__file__).parents[2] / "docs"
CLIENT = DOCS.parent / "clients" / "typescript" / "generate.py"
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


if __name__ == "__main__":
    (DOCS / "openapi.json").write_bytes(document_bytes())
    (DOCS / "reference" / "operations.md").write_text(table(), "utf-8")
    runpy.run_path(str(CLIENT), run_name="__main__")
