"""The JSON Schema of a flow's document, for editors: made of the model, so that the two never differ."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from typing import Any

import msgspec

from outlive._features.flows.document import model
from outlive._features.flows.document.model import Document

SCHEMA_URL = "https://json-schema.org/draft/2020-12/schema"


def flow_schema() -> dict[str, Any]:
    """The JSON Schema of a document: editors complete, explain and check a document with it."""
    (reference,), components = msgspec.json.schema_components([Document], ref_template="#/$defs/{name}")
    described = _descriptions()
    for name, schema in components.items():
        for field, text in described.get(name, {}).items():
            if field in schema["properties"]:
                schema["properties"][field].setdefault("description", text)
    return {"$schema": SCHEMA_URL, "title": "Outlive flow", **reference, "$defs": components}


@cache
def _descriptions() -> dict[str, dict[str, str]]:
    """The docstrings of the fields of the model, by struct and field; nothing where the source is not installed."""
    try:
        tree = ast.parse(inspect.getsource(model))
    except OSError:
        return {}
    found: dict[str, dict[str, str]] = {}
    for struct in tree.body:
        if isinstance(struct, ast.ClassDef):
            texts = found.setdefault(struct.name, {})
            for field, text in zip(struct.body, struct.body[1:], strict=False):
                match field, text:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                        texts[name.rstrip("_")] = " ".join(said.split())
                    case _:
                        pass
    return found
